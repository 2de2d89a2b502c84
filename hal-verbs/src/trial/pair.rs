//! Two queue pairs of one process, connected to each other: one writes to the memory of the other.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::adapter::{
    Access, BATCH, Completion, CompletionQueue, Context, MemoryRegion, Operation, Pages,
    ProtectionDomain, QueuePair, QueuePairLimits, Route, SendBuffers, SendList, SendTimes, Target,
};
use crate::devices::Choice;
use crate::status::WorkStatus;

/// Maximum number of requests of one end in flight at once.
const DEPTH: u32 = 16;

/// The time after which a write is given up, even if the device does not report its completion.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum number of attempts to bring up a connection: see `crate::fabric::link`.
const TRIES: u32 = 5;

/// A connection that leads nowhere is given up after 4.096 us * 2^13 * 4, about 130 ms.
const TIMEOUT_EXPONENT: u8 = 13;
const RETRIES: u8 = 3;

/// The step by which packet numbers advance each time.
const STRIDE: u32 = 0x10_0001;
const PACKET_MASK: u32 = 0x00ff_ffff;

/// The access that both queue pairs allow: the key alone decides.
const ACCESS: Access = Access::REMOTE_READ.union(Access::REMOTE_WRITE);

/// The two ends.
pub(super) struct TrialPair {
    writer: QueuePair,
    owner: QueuePair,
    completions: CompletionQueue,
    buffers: SendBuffers,
    source: MemoryRegion,
    choice: Choice,
    epoch: u32,
    posted: u64,
    /// Completions that have not been asked for yet.
    done: Vec<(u64, WorkStatus)>,
}

impl TrialPair {
    /// Creates the two ends in the reset state. Each write is `bytes` bytes long.
    pub(super) fn new(
        context: &Context,
        choice: &Choice,
        domain: &ProtectionDomain,
        bytes: usize,
    ) -> io::Result<Self> {
        let completions = CompletionQueue::new(context, 4 * DEPTH)?;
        let limits = QueuePairLimits { sends_max: DEPTH, receives_max: 1, inline_bytes_max: 0 };
        let pages = Arc::new(Pages::new(bytes)?);
        Ok(Self {
            writer: QueuePair::new(domain, &completions, limits)?,
            owner: QueuePair::new(domain, &completions, limits)?,
            completions,
            buffers: SendBuffers::new(context),
            source: MemoryRegion::new(domain, &pages, bytes, Access::empty())?,
            choice: choice.clone(),
            epoch: 0,
            posted: 0,
            done: Vec::new(),
        })
    }

    /// Resets both ends and connects them again.
    pub(super) fn connect(&mut self) -> io::Result<()> {
        for tries in 1.. {
            match self.try_to_connect() {
                Err(_) if tries < TRIES => {}
                result => return result,
            }
        }
        Ok(())
    }

    fn try_to_connect(&mut self) -> io::Result<()> {
        self.epoch = self.epoch.wrapping_add(1);
        let packet = self.epoch.wrapping_mul(STRIDE) & PACKET_MASK;
        let numbers = [self.writer.number(), self.owner.number()];
        let ends = [(&mut self.writer, numbers[1]), (&mut self.owner, numbers[0])];
        for (end, remote_number) in ends {
            end.reset()?;
            let route = Route::to_itself(&self.choice, remote_number, packet);
            let times = SendTimes {
                timeout_exponent: TIMEOUT_EXPONENT,
                retries: RETRIES,
                first_packet: packet,
                reads_max: 1,
            };
            end.bring_up(&route, ACCESS, &times)?;
        }
        Ok(())
    }

    /// Posts a write filled with a value, and returns the request's name.
    pub(super) fn post(&mut self, target: Target, value: u8) -> io::Result<u64> {
        let content = vec![value; self.source.bytes()];
        let stored = self.source.pages().writer().apply(0, &content);
        stored.map_err(|_| io::ErrorKind::InvalidInput)?;
        self.posted += 1;
        let mut list = SendList::new(&mut self.buffers);
        let range = Some((&self.source, 0, content.len()));
        if !list.push(self.posted, Operation::Write(target), range, false) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        list.signal_last();
        self.writer.post(list)?;
        Ok(self.posted)
    }

    /// Waits briefly, so that late writes can land.
    pub(super) fn let_time_pass(&self) {
        self.completions.wait(Duration::from_micros(10));
    }

    /// Waits for the completion of a request. Returns `None` if there is none.
    pub(super) fn wait_for(&mut self, name: u64) -> io::Result<Option<WorkStatus>> {
        let until = Instant::now() + PATIENCE;
        let mut batch = [Completion::default(); BATCH];
        loop {
            // The queue is polled first, because a quick completion then needs no call to the
            // kernel.
            let mut taken = self.completions.take(&mut batch)?;
            if taken == 0 {
                self.completions.notify()?;
                taken = self.completions.take(&mut batch)?;
            }
            let done = batch[..taken].iter();
            self.done.extend(done.map(|it| (it.name, WorkStatus::from_raw(it.status))));
            if let Some(index) = self.done.iter().position(|(done, _)| *done == name) {
                return Ok(Some(self.done.swap_remove(index).1));
            }
            let left = until.saturating_duration_since(Instant::now());
            if taken == 0 && !self.completions.wait(left) {
                return Ok(None);
            }
            while self.completions.take_event() {}
        }
    }
}
