//! The process of an experiment as a member of a group of fixed membership: continuous sending, a
//! low rate, and rest. All that the benches know of such a group is here.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::{Batch, Switches};
use tramontane_core::node::Options;

use crate::error::BenchError;
use crate::experiment::{self, Experiment, JOIN_LIMIT, Kind};
use crate::options::Drive;
use crate::touch;
use tramontane_core::fabric::HostFabric as _;
use tramontane_runtime::join::{JoinOptions, join};
use tramontane_runtime::joined::JoinedFabric;
use tramontane_runtime::member::{Idle, Member, Settings};
use tramontane_runtime::rdma::PostCounts;

/// The one subgroup of these groups.
const ALL: SubgroupId = SubgroupId(0);

/// Continuous sending: as many messages as go.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sending {
    pub(crate) message_bytes: usize,
    /// Of each sender.
    pub(crate) messages: u64,
    /// Which of the paper's techniques are on, as the core's bits.
    pub(crate) switch_bits: u8,
    /// Leave the bytes of messages as they are.
    pub(crate) untouched: bool,
    /// Wait after each send, at the members of a rank below `delayed`.
    pub(crate) delay_ns: u64,
    /// How many members wait.
    pub(crate) delayed: u16,
    pub(crate) drive: Drive,
}

/// What one process of [`Sending`] saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Delivered here, own and peers' together.
    pub(crate) messages_per_s: f64,
    /// Rounds used without a message; not counted where a polling thread steps.
    pub(crate) nulls: u64,
    /// Writes posted; not counted there either.
    pub(crate) writes: u64,
    /// What the fabric counted, if it does.
    pub(crate) posts: Option<PostCounts>,
    /// Of the bytes read: keeps them read.
    pub(crate) checksum: u64,
}

/// One sender at a low rate; all members note when each message comes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LowRate {
    /// At least eight.
    pub(crate) message_bytes: usize,
    pub(crate) messages: u64,
    /// Between two messages.
    pub(crate) interval_ns: u64,
}

/// What one process of [`LowRate`] saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Latencies {
    /// From commit to delivery here, of each message.
    pub(crate) latency_ns: Vec<u32>,
    /// What the fabric counted, if it does.
    pub(crate) posts: Option<PostCounts>,
}

/// A group that has nothing to do, and sleeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Idling {
    /// How long it is watched.
    pub(crate) watch_ns: u64,
}

/// What one process of [`Idling`] saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rest {
    /// Share of one processor's time.
    pub(crate) processor_percent: f64,
    /// Writes posted.
    pub(crate) writes: u64,
}

impl Experiment for Sending {
    const KIND: Kind = Kind::Sending;
    type Outcome = Sent;

    fn run(&self, member: &experiment::Member) -> Result<Sent, BenchError> {
        match self.drive {
            Drive::Caller => caller_driven(self, member),
            Drive::Polled => polled(self, member),
        }
    }
}

impl Experiment for LowRate {
    const KIND: Kind = Kind::LowRate;
    type Outcome = Latencies;

    fn run(&self, member: &experiment::Member) -> Result<Latencies, BenchError> {
        latency(self, member)
    }
}

impl Experiment for Idling {
    const KIND: Kind = Kind::Idling;
    type Outcome = Rest;

    fn run(&self, member: &experiment::Member) -> Result<Rest, BenchError> {
        idle(self, member)
    }
}

fn start(own: &experiment::Member, switches: Switches) -> Result<Member<JoinedFabric>, BenchError> {
    let cancel = AtomicBool::new(false);
    let options = Options { switches, ..Options::default() };
    let join_options = JoinOptions {
        meeting: own.place.meeting()?,
        time_limit: JOIN_LIMIT,
        cancel: &cancel,
        settings: Settings { options, ..Settings::default() },
    };
    Ok(join(&own.group, own.node, &join_options)?)
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
fn caller_driven(task: &Sending, own: &experiment::Member) -> Result<Sent, BenchError> {
    let mut member = start(own, Switches::from_bits_truncate(task.switch_bits))?;
    let sender = member.sender(ALL);
    let to_send = if sender.is_some() { task.messages } else { 0 };
    let total = own.messages_of_all(task.messages);
    let mut outcome = Sent::default();
    let mut idle = Idle::new(Duration::MAX);
    let (mut sent, mut delivered) = (0, 0);
    let delay_ns = if own.node < u32::from(task.delayed) { task.delay_ns } else { 0 };
    let begun = Instant::now();
    while delivered < total {
        if let Some(sender) = &sender {
            let most = if delay_ns > 0 { 1 } else { to_send - sent };
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            // Nothing is asked for at the end: a run that is dropped goes out as nulls.
            if most > 0
                && let Ok(mut run) = sender.try_reserve_run(most)
            {
                while let Ok(Some(mut slot)) = run.next(task.message_bytes) {
                    if !task.untouched {
                        touch::write(slot.payload(), sent);
                    }
                    slot.commit();
                    sent += 1;
                }
                delay(delay_ns);
            }
        }
        let checksum = &mut outcome.checksum;
        let mut read = |batch: &mut Batch<'_>| {
            for message in batch {
                if !task.untouched {
                    *checksum = checksum.wrapping_add(touch::read(message.payload));
                }
            }
        };
        let progress = member.step(&mut read)?;
        delivered += progress.delivered;
        outcome.nulls += progress.nulls;
        outcome.writes += u64::from(progress.writes);
        if progress.is_idle() {
            idle.pause();
        } else {
            idle.reset();
        }
    }
    outcome.messages_per_s = total as f64 / begun.elapsed().as_secs_f64();
    outcome.posts = member.fabric().counts();
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

fn polled(task: &Sending, own: &experiment::Member) -> Result<Sent, BenchError> {
    let member = start(own, Switches::from_bits_truncate(task.switch_bits))?;
    let total = own.messages_of_all(task.messages);
    let (done, finished) = std::sync::mpsc::sync_channel(1);
    let (mut delivered, mut checksum) = (0_u64, 0_u64);
    let untouched = task.untouched;
    let begun = Instant::now();
    let application = move |batch: &mut Batch<'_>| {
        for message in batch {
            if !untouched {
                checksum = checksum.wrapping_add(touch::read(message.payload));
            }
            delivered += 1;
        }
        if delivered == total {
            let _ = done.try_send((begun.elapsed(), checksum));
        }
    };
    let polled = member.spawn(application).map_err(|error| BenchError::Setup(error.to_string()))?;
    if let Some(sender) = polled.sender(ALL) {
        let delay_ns = if own.node < u32::from(task.delayed) { task.delay_ns } else { 0 };
        let mut sent = 0;
        while sent < task.messages {
            let most = if delay_ns > 0 { 1 } else { task.messages - sent };
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            let mut run = sender.reserve_run(most, JOIN_LIMIT)?;
            while let Ok(Some(mut slot)) = run.next(task.message_bytes) {
                if !untouched {
                    touch::write(slot.payload(), sent);
                }
                slot.commit();
                sent += 1;
            }
            delay(delay_ns);
        }
    }
    let (elapsed, checksum) = finished
        .recv_timeout(Duration::from_secs(60))
        .map_err(|_| BenchError::Setup("the last message did not arrive within 60 s".into()))?;
    std::thread::sleep(Duration::from_millis(300));
    // The others may be through, and gone, before us: that is no failure of this run.
    let _ = polled.close();
    let messages_per_s = total as f64 / elapsed.as_secs_f64();
    Ok(Sent { messages_per_s, checksum, ..Sent::default() })
}

/// One sender at a low rate; all members note when each message comes.
fn latency(task: &LowRate, own: &experiment::Member) -> Result<Latencies, BenchError> {
    let clock = quanta::Clock::new();
    let mut member = start(own, Switches::all())?;
    let sender = if own.node == 0 { member.sender(ALL) } else { None };
    let mut outcome = Latencies::default();
    outcome.latency_ns.reserve_exact(task.messages as usize);
    let mut next = clock.raw();
    let mut sent = 0;
    while (outcome.latency_ns.len() as u64) < task.messages {
        if let Some(sender) = &sender
            && sent < task.messages
            && outcome.latency_ns.len() as u64 == sent
            && clock.delta_as_nanos(next, clock.raw()) > task.interval_ns
            && let Ok(mut slot) = sender.try_reserve(task.message_bytes.max(8))
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
        member.step(&mut note)?;
    }
    outcome.posts = member.fabric().counts();
    linger(member)?;
    Ok(outcome)
}

/// A group that has nothing to do: what it costs, and what it posts, once it sleeps.
fn idle(task: &Idling, own: &experiment::Member) -> Result<Rest, BenchError> {
    let mut member = start(own, Switches::all())?;
    let mut outcome = Rest::default();
    let mut nothing = |_: &mut Batch<'_>| {};
    if let Some(sender) = member.sender(ALL) {
        sender.send(&[0], JOIN_LIMIT)?;
    }
    let mut rest = Idle::new(member.fabric().idle_time());
    while !rest.pause() || !member.is_settled() {
        if !member.step(&mut nothing)?.is_idle() {
            rest.reset();
        }
    }
    let before = processor_time();
    let begun = Instant::now();
    let length = Duration::from_nanos(task.watch_ns);
    while begun.elapsed() < length {
        let slept = member.sleep(&mut nothing, length)?;
        outcome.writes += u64::from(slept.progress.writes);
    }
    let used = processor_time() - before;
    outcome.processor_percent = 100.0 * used.as_secs_f64() / begun.elapsed().as_secs_f64();
    linger(member)?;
    Ok(outcome)
}

/// Processor time that this process has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
}
