//! One process of an experiment: a member, or one end of a probe.
//!
//! The bench starts it with a [`Task`] as JSON, and it answers with an [`Outcome`] as one line of JSON.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{Rank, SubgroupId};
use tramontane_core::multicast::{Batch, Switches};
use tramontane_core::node::Options;

use super::blocks::real::member::BlockTask;
use super::blocks::real::way::Way;
use super::blocks::real::{limit, member as block_member};
use super::{BenchError, mesh, probe, touch};
use crate::configuration::GroupConfiguration;
use crate::host::HostFabric as _;
use crate::join::{JoinOptions, join};
use crate::joined::JoinedFabric;
use crate::local::LocalPlace;
use crate::member::{Idle, Member, Settings};
use crate::rdma::PostCounts;
use crate::shared_memory::{Mappings, Rendezvous, Root};

/// What one process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Where the group meets.
    pub place: LocalPlace,
    /// The own node id.
    pub node: u32,
    /// All of it.
    pub group: GroupConfiguration,
    /// Bytes of each message.
    pub bytes: usize,
    /// Messages of each sender; rounds of a hand-off.
    pub messages: u64,
    /// A processor to stay on.
    pub processor: Option<usize>,
    /// Which of the paper's techniques are on, as the core's bits.
    pub switches: u8,
    /// Leave the bytes of messages as they are.
    pub untouched: bool,
    /// Wait after each send, in nanoseconds, at the members of a rank below `delayed`.
    pub delay_ns: u64,
    /// How many members wait.
    pub delayed: u16,
    /// What it is.
    pub kind: Kind,
}

/// The kinds of experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One cache line back and forth.
    HandOff,
    /// A ring each way without a protocol.
    BareRing,
    /// A mesh of TCP connections without a protocol, counted for so many ms.
    BareMesh(u64),
    /// Multicast, each process driving its member in its own loop.
    Caller,
    /// Multicast, with a polling thread beside the sending one.
    Polled,
    /// Multicast at a low rate: one sender, and the time from commit to delivery.
    Latency,
    /// A group that has nothing to do, and sleeps.
    Idle,
    /// Multicast in a group whose membership may change, with a heartbeat of so many ms.
    InViews(u64),
    /// Block groups.
    Blocks(BlockTask),
    /// Bytes of one mapping, as each receiver has them, after so many messages that do not count.
    BlockLimit {
        /// Messages that do not count.
        warm_ups: u64,
        /// How each has them.
        way: Way,
    },
}

/// What one process saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Messages a second at this process, own and peers' together; for a hand-off, nanoseconds one way; for a bare mesh,
    /// bytes a second that came from others.
    pub rate: f64,
    /// Messages delivered here.
    pub delivered: u64,
    /// Rounds used without a message.
    pub nulls: u64,
    /// Writes posted.
    pub writes: u64,
    /// What the fabric counted, if it does.
    pub counts: Option<PostCounts>,
    /// Share of one processor's time, in percent, while idle.
    pub processor_percent: f64,
    /// Sum of the bytes read: keeps them read.
    pub sum: u64,
    /// From commit to delivery here, for each message, in nanoseconds.
    pub latency_ns: Vec<u32>,
    /// When the first measured message of a block group's root was sent and the last one was everywhere, by the machine's clock.
    #[serde(default)]
    pub span_ns: Option<(u64, u64)>,
    /// Processor time of a probe's copies that were measured.
    #[serde(default)]
    pub copying_ns: u64,
    /// How long each pause of a delayed member was.
    #[serde(default)]
    pub paused_ns: Vec<u32>,
}

/// Runs a task.
///
/// # Errors
/// [`BenchError`].
pub fn run(task: &Task) -> Result<Outcome, BenchError> {
    if let Some(processor) = task.processor {
        stay_on(processor)?;
    }
    match task.kind {
        Kind::HandOff => {
            let mappings = meet(task)?;
            let ns = probe::hand_off(&mappings, task.messages)?;
            mappings.leave();
            Ok(Outcome { rate: ns, ..Outcome::default() })
        }
        Kind::BareRing => {
            let mappings = meet(task)?;
            let shape =
                |rank| task.group.with_layout(|layout| layout.ring(Rank(rank), SubgroupId(0)));
            let shapes = match (shape(0)?, shape(1)?) {
                (Some(first), Some(second)) => [first, second],
                _ => return Err(BenchError::Setup("a bare ring needs two senders".into())),
            };
            let (rate, sum) = probe::bare_ring(&mappings, shapes, task.bytes, task.messages)?;
            mappings.leave();
            Ok(Outcome { rate, sum, ..Outcome::default() })
        }
        Kind::BareMesh(count_ms) => {
            let rate = mesh::run(task, Duration::from_millis(count_ms))?;
            Ok(Outcome { rate, ..Outcome::default() })
        }
        Kind::Caller => caller_driven(task),
        Kind::Polled => polled(task),
        Kind::Latency => latency(task),
        Kind::Idle => idle(task),
        Kind::InViews(heartbeat_ms) => super::in_views::run(task, heartbeat_ms),
        Kind::Blocks(part) => block_member::run(task, &part),
        Kind::BlockLimit { warm_ups, way } => limit::run(task, warm_ups, way),
    }
}

fn stay_on(processor: usize) -> Result<(), BenchError> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| {
        BenchError::Setup(format!("cannot stay on processor {processor}: {error}"))
    })
}

pub(super) fn meet(task: &Task) -> Result<Mappings, BenchError> {
    let root = Root::from_env();
    let name = task.place.name()?;
    let name = name.ok_or_else(|| BenchError::Setup("a probe runs over shared memory".into()))?;
    let rank =
        task.group.rank_of(task.node).ok_or_else(|| BenchError::Setup("unknown node".into()))?;
    let mappings = task.group.with_layout(|layout| {
        Rendezvous::new(&root, &name, layout, rank)?.join(JOIN_LIMIT, &AtomicBool::new(false))
    })??;
    Ok(mappings)
}

pub(super) const JOIN_LIMIT: Duration = Duration::from_secs(20);

fn member(task: &Task) -> Result<Member<JoinedFabric>, BenchError> {
    let cancel = AtomicBool::new(false);
    let options =
        Options { switches: Switches::from_bits_truncate(task.switches), ..Options::default() };
    let join_options = JoinOptions {
        meeting: task.place.meeting()?,
        time_limit: JOIN_LIMIT,
        cancel: &cancel,
        settings: Settings { options, ..Settings::default() },
    };
    Ok(join(&task.group, task.node, &join_options)?)
}

pub(super) fn totals(task: &Task) -> u64 {
    task.messages * task.group.subgroups[0].senders.len() as u64
}

/// Waits without giving the processor away: a delay of the experiment, not a rest.
fn delay(nanoseconds: u64) {
    if nanoseconds > 0 {
        let start = Instant::now();
        while start.elapsed() < Duration::from_nanos(nanoseconds) {
            std::hint::spin_loop();
        }
    }
}

/// The paper's continuous sending, in one loop: send while slots are free, then step.
fn caller_driven(task: &Task) -> Result<Outcome, BenchError> {
    let mut member = member(task)?;
    let sender = member.sender(SubgroupId(0));
    let own = if sender.is_some() { task.messages } else { 0 };
    let total = totals(task);
    let mut outcome = Outcome::default();
    let mut idle = Idle::new(Duration::MAX);
    let mut sent = 0;
    let delay_ns = if task.node < u32::from(task.delayed) { task.delay_ns } else { 0 };
    let start = Instant::now();
    while outcome.delivered < total {
        if let Some(sender) = &sender {
            let most = if delay_ns > 0 { 1 } else { own - sent };
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            // Nothing is asked for at the end: a run that is dropped goes out as nulls.
            if most > 0
                && let Ok(mut run) = sender.try_reserve_run(most)
            {
                while let Ok(Some(mut slot)) = run.next(task.bytes) {
                    if !task.untouched {
                        touch::write(slot.payload(), sent);
                    }
                    slot.commit();
                    sent += 1;
                }
                delay(delay_ns);
            }
        }
        let sum = &mut outcome.sum;
        let mut read = |batch: &mut Batch<'_>| {
            for message in batch {
                if !task.untouched {
                    *sum = sum.wrapping_add(touch::read(message.payload));
                }
            }
        };
        let progress = member.step(&mut read)?;
        outcome.delivered += progress.delivered;
        outcome.nulls += progress.nulls;
        outcome.writes += u64::from(progress.writes);
        if progress.is_idle() {
            idle.pause();
        } else {
            idle.reset();
        }
    }
    outcome.rate = total as f64 / start.elapsed().as_secs_f64();
    outcome.counts = member.fabric().counts();
    linger(member)?;
    Ok(outcome)
}

/// Stays until the others have it all too: a member that leaves is lost to them.
fn linger(mut member: Member<JoinedFabric>) -> Result<(), BenchError> {
    let mut idle = Idle::new(Duration::from_millis(300));
    loop {
        match member.step(&mut |_: &mut Batch<'_>| {}) {
            Ok(progress) if progress.is_idle() => {
                if idle.pause() {
                    break;
                }
            }
            Ok(_) => idle.reset(),
            // The others are through as well.
            Err(_) => break,
        }
    }
    member.leave();
    Ok(())
}

fn polled(task: &Task) -> Result<Outcome, BenchError> {
    let member = member(task)?;
    let total = totals(task);
    let (done, finished) = std::sync::mpsc::sync_channel(1);
    let (mut delivered, mut sum) = (0_u64, 0_u64);
    let untouched = task.untouched;
    let start = Instant::now();
    let application = move |batch: &mut Batch<'_>| {
        for message in batch {
            if !untouched {
                sum = sum.wrapping_add(touch::read(message.payload));
            }
            delivered += 1;
        }
        if delivered == total {
            let _ = done.try_send((start.elapsed(), sum));
        }
    };
    let polled = member.spawn(application).map_err(|error| BenchError::Setup(error.to_string()))?;
    if let Some(sender) = polled.sender(SubgroupId(0)) {
        let delay_ns = if task.node < u32::from(task.delayed) { task.delay_ns } else { 0 };
        let mut sent = 0;
        while sent < task.messages {
            let most = if delay_ns > 0 { 1 } else { task.messages - sent };
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            let mut run = sender.reserve_run(most, JOIN_LIMIT)?;
            while let Ok(Some(mut slot)) = run.next(task.bytes) {
                if !untouched {
                    touch::write(slot.payload(), sent);
                }
                slot.commit();
                sent += 1;
            }
            delay(delay_ns);
        }
    }
    let (elapsed, sum) = finished
        .recv_timeout(Duration::from_secs(60))
        .map_err(|_| BenchError::Setup("the last message did not arrive within 60 s".into()))?;
    std::thread::sleep(Duration::from_millis(300));
    // The others may be through, and gone, before us: that is no failure of this run.
    let _ = polled.close();
    Ok(Outcome {
        rate: total as f64 / elapsed.as_secs_f64(),
        delivered: total,
        sum,
        ..Outcome::default()
    })
}

/// One sender at a low rate; all members note when each message comes.
fn latency(task: &Task) -> Result<Outcome, BenchError> {
    let clock = quanta::Clock::new();
    let mut member = member(task)?;
    let sender = if task.node == 0 { member.sender(SubgroupId(0)) } else { None };
    let mut outcome = Outcome::default();
    outcome.latency_ns.reserve_exact(task.messages as usize);
    let mut next = clock.raw();
    let mut sent = 0;
    while (outcome.latency_ns.len() as u64) < task.messages {
        if let Some(sender) = &sender
            && sent < task.messages
            && outcome.latency_ns.len() as u64 == sent
            && clock.delta_as_nanos(next, clock.raw()) > task.delay_ns
            && let Ok(mut slot) = sender.try_reserve(task.bytes.max(8))
        {
            touch::write(slot.payload(), sent);
            next = clock.raw();
            slot.payload()[..8].copy_from_slice(&next.to_ne_bytes());
            slot.commit();
            sent += 1;
        }
        let latencies = &mut outcome.latency_ns;
        let mut note = |batch: &mut Batch<'_>| {
            for message in batch {
                let now = clock.raw();
                let committed =
                    message.payload.first_chunk().map_or(now, |raw| u64::from_ne_bytes(*raw));
                latencies.push(clock.delta_as_nanos(committed, now).try_into().unwrap_or(u32::MAX));
            }
        };
        let progress = member.step(&mut note)?;
        outcome.nulls += progress.nulls;
    }
    outcome.delivered = outcome.latency_ns.len() as u64;
    outcome.counts = member.fabric().counts();
    linger(member)?;
    Ok(outcome)
}

/// A group that has nothing to do: what it costs, and what it posts, once it sleeps.
fn idle(task: &Task) -> Result<Outcome, BenchError> {
    let mut member = member(task)?;
    let mut outcome = Outcome::default();
    let mut nothing = |_: &mut Batch<'_>| {};
    if let Some(sender) = member.sender(SubgroupId(0)) {
        sender.send(&[0], JOIN_LIMIT)?;
    }
    let mut rest = Idle::new(member.fabric().idle_time());
    while !rest.pause() || !member.is_settled() {
        if !member.step(&mut nothing)?.is_idle() {
            rest.reset();
        }
    }
    let before = processor_time();
    let start = Instant::now();
    let length = Duration::from_nanos(task.delay_ns);
    while start.elapsed() < length {
        let slept = member.sleep(&mut nothing, length)?;
        outcome.writes += u64::from(slept.progress.writes);
    }
    let used = processor_time() - before;
    outcome.processor_percent = 100.0 * used.as_secs_f64() / start.elapsed().as_secs_f64();
    linger(member)?;
    Ok(outcome)
}

/// Processor time that this process has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
}
