//! The process of an experiment as a member of a group: continuous sending, a low rate, and idling.
//! All of the benches' code for such a group is in this module. The group's description determines
//! whether its membership may change.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::Switches;

use crate::error::BenchError;
use crate::experiment::{self, Experiment, JOIN_LIMIT, Kind};
use crate::options::Drive;
use crate::touch;
use tramontane_local::clock::process_time_ns;
use tramontane_runtime::group::{
    Application, Messages, Run, Running, Sender, StartError, Stepped, start_stepped,
};
use tramontane_runtime::member::Idle;
use tramontane_runtime::rdma::PostCounts;

/// The only subgroup of these groups.
pub(crate) const ALL: SubgroupId = SubgroupId(0);

/// Time limit for the last message.
const LAST_LIMIT: Duration = Duration::from_secs(60);

/// Continuous sending, as fast as possible. Messages that do not fit into a slot are sent as large
/// ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sending {
    pub(crate) message_bytes: usize,
    /// Number of messages per sender.
    pub(crate) messages: u64,
    /// The enabled techniques of the paper, as the core's bits.
    pub(crate) switch_bits: u8,
    /// Whether the bytes of messages are left untouched.
    pub(crate) untouched: bool,
    pub(crate) drive: Drive,
}

/// The measurements of one process of [`Sending`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SendFigures {
    /// Messages delivered here per second, including the member's own; with a polling thread,
    /// counted from the first delivery.
    pub(crate) messages_per_s: f64,
    /// Number of rounds without a message (nulls); not counted with a polling thread.
    pub(crate) nulls: u64,
    /// Number of writes posted; not counted with a polling thread.
    pub(crate) writes: u64,
    /// The fabric's counts, if it keeps counts.
    pub(crate) posts: Option<PostCounts>,
    /// A checksum of the bytes read, so that the reads are not optimised away.
    pub(crate) checksum: u64,
}

/// One sender at a low rate; all members record when each message arrives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LowRate {
    /// Size of a message in bytes, at least 8.
    pub(crate) message_bytes: usize,
    pub(crate) messages: u64,
    /// Time between two messages.
    pub(crate) interval_ns: u64,
    /// Whether idle members yield their processors, because there are more members than processors.
    pub(crate) shared: bool,
}

/// The measurements of one process of [`LowRate`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Latencies {
    /// Time from commit to delivery here, for each message.
    pub(crate) latency_ns: Vec<u32>,
    /// The fabric's counts, if it keeps counts.
    pub(crate) posts: Option<PostCounts>,
}

/// A group that is idle, and sleeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Idling {
    /// Duration of the observation.
    pub(crate) watch_ns: u64,
}

/// The measurements of one process of [`Idling`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rest {
    /// Share of one processor's time.
    pub(crate) processor_percent: f64,
    /// How often the member woke up.
    pub(crate) wakeups: u64,
    /// Writes posted.
    pub(crate) writes: u64,
}

/// Starts a member that this process steps.
pub(crate) fn start<A: Application>(
    own: &experiment::ExperimentMember,
    switches: Switches,
    application: A,
) -> Result<Stepped<A>, BenchError> {
    let (description, mut options) = own.start()?;
    options.settings.options.switches = switches;
    Ok(start_stepped(description, options, application)?)
}

/// Starts a thread that steps a member.
fn spawn<A: Application + 'static>(member: Stepped<A>) -> Result<Running, BenchError> {
    Ok(member.spawn().map_err(StartError::from)?)
}

/// Reads each byte of delivered messages, or leaves them untouched.
struct ByteReader {
    untouched: bool,
    checksum: u64,
}

impl ByteReader {
    /// Reads messages, and returns their number.
    #[inline]
    fn read(&mut self, messages: &mut Messages<'_, '_>) -> u64 {
        let mut count = 0;
        let (untouched, mut checksum) = (self.untouched, self.checksum);
        messages.for_each(|message| {
            if !untouched {
                checksum = checksum.wrapping_add(touch::read(message.payload));
            }
            count += 1;
        });
        self.checksum = checksum;
        count
    }
}

impl Application for ByteReader {
    #[inline]
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        self.read(messages);
    }
}

impl Experiment for Sending {
    const KIND: Kind = Kind::Sending;
    type Outcome = SendFigures;

    fn run(
        &self,
        own: &experiment::ExperimentMember,
    ) -> Result<(SendFigures, Option<Running>), BenchError> {
        let (sent, running) = match self.drive {
            Drive::Caller => self.caller_driven(own)?,
            Drive::Polled => self.polled(own)?,
        };
        Ok((sent, Some(running)))
    }
}

impl Sending {
    /// Creates a run with all techniques, each byte written and read, and a polling thread.
    pub(crate) fn polled_plainly(message_bytes: usize, messages: u64) -> Self {
        Self {
            message_bytes,
            messages,
            switch_bits: Switches::all().bits(),
            untouched: false,
            drive: Drive::Polled,
        }
    }

    /// Runs the paper's continuous sending in one loop, which sends while slots are free and then
    /// steps.
    fn caller_driven(
        &self,
        own: &experiment::ExperimentMember,
    ) -> Result<(SendFigures, Running), BenchError> {
        let mut member = start(own, self.switches(), self.reader())?;
        let mut sender = member.sender_of(ALL);
        let to_send = if sender.is_some() { self.messages } else { 0 };
        let total = own.messages_of_all(self.messages);
        let mut outcome = SendFigures::default();
        let mut idle = Idle::new(Duration::MAX);
        let (mut sent, mut delivered) = (0, 0);
        let begun = Instant::now();
        while delivered < total {
            // No slots are reserved at the end, because a dropped run would be sent as nulls.
            if sent < to_send
                && let Some(sender) = &mut sender
                && let Ok(run) = sender.try_reserve_run(self.most(sent))
            {
                self.fill(run, &mut sent);
            }
            let step = member.step()?;
            delivered += step.progress.delivered;
            outcome.nulls += step.progress.nulls;
            outcome.writes += u64::from(step.progress.writes);
            if step.is_idle() {
                // This thread never sleeps.
                if idle.pause() {
                    std::thread::yield_now();
                }
            } else {
                idle.reset();
            }
        }
        outcome.messages_per_s = total as f64 / begun.elapsed().as_secs_f64();
        outcome.posts = member.counts();
        outcome.checksum = member.application().checksum;
        Ok((outcome, spawn(member)?))
    }

    fn polled(
        &self,
        own: &experiment::ExperimentMember,
    ) -> Result<(SendFigures, Running), BenchError> {
        let total = own.messages_of_all(self.messages);
        let (done, finished) = sync_channel(1);
        let (mut reader, mut delivered, mut begun) = (self.reader(), 0, None);
        let application = move |messages: &mut Messages<'_, '_>| {
            let begun = begun.get_or_insert_with(Instant::now);
            delivered += reader.read(messages);
            if delivered == total {
                let _ = done.try_send((begun.elapsed(), reader.checksum));
            }
        };
        let running = spawn(start(own, self.switches(), application)?)?;
        match running.sender_of(ALL) {
            Some(sender) if self.message_bytes > sender.message_max() => self.send_large(sender)?,
            Some(sender) => self.send(sender)?,
            None => {}
        }
        let late = || format!("the last message did not arrive within {LAST_LIMIT:?}");
        let (elapsed, checksum) = finished.recv_timeout(LAST_LIMIT).map_err(|_| {
            running.stopped().map_or_else(|| BenchError::Setup(late()), BenchError::from)
        })?;
        let messages_per_s = total.saturating_sub(1) as f64 / elapsed.as_secs_f64();
        Ok((SendFigures { messages_per_s, checksum, ..SendFigures::default() }, running))
    }

    fn send(&self, mut sender: Sender) -> Result<(), BenchError> {
        let mut sent = 0;
        while sent < self.messages {
            let run = sender.reserve_run(self.most(sent), JOIN_LIMIT)?;
            self.fill(run, &mut sent);
        }
        Ok(())
    }

    fn send_large(&self, mut sender: Sender) -> Result<(), BenchError> {
        let setup = |error: &dyn std::fmt::Display| BenchError::Setup(error.to_string());
        let bytes = self.message_bytes;
        for number in 0..self.messages {
            let mut buffer = sender.buffer(bytes).map_err(|error| setup(&error))?;
            touch::write(&mut buffer[..bytes], number);
            sender.send_large(buffer, bytes, JOIN_LIMIT).map_err(|error| setup(&error))?;
        }
        Ok(())
    }

    /// Builds a message in each slot of a run.
    #[inline]
    fn fill(&self, mut run: Run<'_>, sent: &mut u64) {
        while let Ok(Some(mut slot)) = run.next(self.message_bytes) {
            if !self.untouched {
                touch::write(slot.payload(), *sent);
            }
            slot.commit();
            *sent += 1;
        }
    }

    /// Returns the maximum number of slots to take.
    fn most(&self, sent: u64) -> u32 {
        u32::try_from(self.messages - sent).unwrap_or(u32::MAX)
    }

    fn switches(&self) -> Switches {
        Switches::from_bits_truncate(self.switch_bits)
    }

    fn reader(&self) -> ByteReader {
        ByteReader { untouched: self.untouched, checksum: 0 }
    }
}

/// Records the time since each message was committed.
struct Noting {
    clock: quanta::Clock,
    latency_ns: Vec<u32>,
}

impl Application for Noting {
    #[inline]
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        for message in messages {
            let now = self.clock.raw();
            let committed =
                message.payload.first_chunk().map_or(now, |raw| u64::from_ne_bytes(*raw));
            let latency_ns = self.clock.delta_as_nanos(committed, now);
            self.latency_ns.push(latency_ns.try_into().unwrap_or(u32::MAX));
        }
    }
}

impl Experiment for LowRate {
    const KIND: Kind = Kind::LowRate;
    type Outcome = Latencies;

    fn run(
        &self,
        own: &experiment::ExperimentMember,
    ) -> Result<(Latencies, Option<Running>), BenchError> {
        let clock = quanta::Clock::new();
        let latency_ns = Vec::with_capacity(self.messages as usize);
        let noting = Noting { clock: clock.clone(), latency_ns };
        let mut member = start(own, Switches::all(), noting)?;
        let mut sender = if own.rank == 0 { member.sender_of(ALL) } else { None };
        let mut next = clock.raw();
        let (mut sent, mut delivered) = (0, 0);
        while delivered < self.messages {
            if let Some(sender) = &mut sender
                && sent < self.messages
                && delivered == sent
                && clock.delta_as_nanos(next, clock.raw()) > self.interval_ns
                && let Ok(mut slot) = sender.try_reserve(self.message_bytes.max(8))
            {
                touch::write(slot.payload(), sent);
                next = clock.raw();
                slot.payload()[..8].copy_from_slice(&next.to_ne_bytes());
                slot.commit();
                sent += 1;
            }
            let step = member.step()?;
            delivered += step.progress.delivered;
            if self.shared && step.is_idle() {
                std::thread::yield_now();
            }
        }
        let posts = member.counts();
        let latency_ns = std::mem::take(&mut member.application().latency_ns);
        Ok((Latencies { latency_ns, posts }, Some(spawn(member)?)))
    }
}

/// Measures the cost and the posts of an idle group once it sleeps.
impl Experiment for Idling {
    const KIND: Kind = Kind::Idling;
    type Outcome = Rest;

    fn run(
        &self,
        own: &experiment::ExperimentMember,
    ) -> Result<(Rest, Option<Running>), BenchError> {
        let mut member = start(own, Switches::all(), |_: &mut Messages<'_, '_>| {})?;
        if let Some(mut sender) = member.sender_of(ALL) {
            sender.send(&[0], JOIN_LIMIT)?;
        }
        let mut idle = member.idle();
        while !idle.pause() || !member.is_settled() {
            if !member.step()?.is_idle() {
                idle.reset();
            }
        }
        let (processor_time_before, writes_before) = (process_time_ns(), member.writes());
        let begun = Instant::now();
        let length = Duration::from_nanos(self.watch_ns);
        let mut wakeups = 0;
        while begun.elapsed() < length {
            member.sleep(length)?;
            wakeups += 1;
        }
        let used_ns = process_time_ns() - processor_time_before;
        let rest = Rest {
            wakeups,
            processor_percent: used_ns as f64 / 1e7 / begun.elapsed().as_secs_f64(),
            writes: member.writes() - writes_before,
        };
        Ok((rest, Some(spawn(member)?)))
    }
}
