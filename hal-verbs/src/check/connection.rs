//! One connection of a check, with separate memory at each end.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_core::memory::Row;

use crate::adapter::{
    Access, BATCH, Completion, CompletionQueue, MemoryRegion, Operation, Pages, ProtectionDomain,
    QueuePair, QueuePairLimits, SendBuffers, SendList, SendTimes, Target,
};
use crate::protocol::{Card, CardLink, LentMemory};
use crate::settings::WriteOrder;
use crate::site::{JoinError, Site, card_of, route_to, target_of};
use crate::status::WorkStatus;

/// Size, in bytes, of the memory that peers write to, and of the memory to write from.
pub(super) const MEMORY_BYTES: usize = 1 << 20;

/// Maximum number of requests in flight.
const DEPTH: u32 = 128;

/// One request in this many has a completion.
const SIGNAL_EVERY: u64 = 16;

/// The end of an awaited request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestEnd {
    /// The request ended with this status.
    With(WorkStatus),
    /// The request did not end within the time.
    NotYet,
}

/// A part of the local source, and its offset at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckedHalf {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) bytes: usize,
}

impl CheckedHalf {
    /// Returns a part that has the same offset at both ends.
    pub(super) const fn at(place: usize, bytes: usize) -> Self {
        Self { from: place, to: place, bytes }
    }
}

/// One end of a connection.
pub(super) struct CheckConnection {
    // This field is the first, so that no queue pair outlives the memory to which it writes.
    pair: QueuePair,
    completions: CompletionQueue,
    buffers: SendBuffers,
    /// The memory to which peers write.
    memory: Option<MemoryRegion>,
    pages: Arc<Pages>,
    /// The memory from which this end writes.
    source: MemoryRegion,
    card: Card,
    target: Target,
    times: SendTimes,
    /// The number of posted requests, and the number of those known to be complete.
    posted: u64,
    done: u64,
    failed: Option<WorkStatus>,
}

impl CheckConnection {
    /// Creates a queue pair and memory, without a connection.
    pub(super) fn new(site: &Site) -> Result<Self, JoinError> {
        let failed = |action| move |source| site.failed(action, source);
        let domain =
            ProtectionDomain::new(site.context()).map_err(failed("create a protection domain"))?;
        let completions = CompletionQueue::new(site.context(), DEPTH)
            .map_err(failed("create a completion queue"))?;
        let pages = Pages::new(MEMORY_BYTES).map(Arc::new).map_err(failed("take memory"))?;
        let own = Pages::new(MEMORY_BYTES).map(Arc::new).map_err(failed("take memory"))?;
        let register = |pages: &Arc<Pages>, access| {
            MemoryRegion::new(&domain, pages, MEMORY_BYTES, access)
                .map_err(|source| site.registration_failed(MEMORY_BYTES, source))
        };
        let memory = register(&pages, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        let source = register(&own, Access::empty())?;
        let limits = QueuePairLimits { sends_max: DEPTH, receives_max: 1, inline_bytes_max: 0 };
        let pair =
            QueuePair::new(&domain, &completions, limits).map_err(failed("create a queue pair"))?;
        let link = CardLink {
            number: pair.number(),
            first_packet: 1,
            memory: LentMemory {
                address: memory.address(),
                key: memory.remote_key(),
                bytes: MEMORY_BYTES as u64,
            },
        };
        Ok(Self {
            pair,
            completions,
            buffers: SendBuffers::new(site.context()),
            memory: Some(memory),
            pages,
            source,
            card: card_of(site.choice(), 1, WriteOrder::ByDevice, vec![link]),
            target: Target { address: 0, key: 0 },
            times: SendTimes {
                timeout_exponent: site.loss_times().timeout_exponent,
                retries: site.loss_times().retries,
                first_packet: link.first_packet,
                reads_max: 1,
            },
            posted: 0,
            done: 0,
            failed: None,
        })
    }

    /// Returns this end's card for the other.
    pub(super) fn card(&self) -> Vec<u8> {
        self.card.encode()
    }

    /// Brings this end up.
    pub(super) fn connect(&mut self, site: &Site, card: &[u8]) -> Result<(), JoinError> {
        let failed = |source| site.failed("connect to the other end", source);
        let card = Card::decode(card, 1, 0);
        let card = card.filter(|card| card.links[0].memory.bytes == MEMORY_BYTES as u64);
        let card = card.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        let theirs = card.links[0];
        let choice = site.choice();
        let route = route_to(choice, &card, &theirs, 1);
        self.card.mtu_bytes = self.mtu_bytes().min(card.mtu_bytes);
        self.target = target_of(&theirs.memory);
        self.pair.bring_up(&route, Access::REMOTE_WRITE, &self.times).map_err(failed)
    }

    /// Returns the packet payload in bytes; once connected, that of both ends.
    pub(super) const fn mtu_bytes(&self) -> u32 {
        self.card.mtu_bytes
    }

    /// Returns the memory to which the other end writes.
    pub(super) fn written(&self) -> Row<'_> {
        self.pages.row()
    }

    /// Stores words to be written to the other end, all with the same value.
    pub(super) fn fill(&self, offset: usize, bytes: usize, value: u64) {
        for at in (offset..offset + bytes).step_by(8) {
            if let Ok(cell) = self.source.pages().writer().cell(at) {
                cell.publish(value);
            }
        }
    }

    /// Waits for room and writes parts of the local source to the other end, with one doorbell.
    /// Returns `false` if the connection has failed.
    pub(super) fn write(&mut self, parts: &[CheckedHalf], until: Instant) -> bool {
        let wanted = parts.len() as u64;
        while self.posted - self.done + wanted > u64::from(DEPTH) && self.failed.is_none() {
            if !self.take() && Instant::now() > until {
                return false;
            }
        }
        if self.failed.is_some() {
            return false;
        }
        let mut list = SendList::new(&mut self.buffers);
        let mut number = self.posted;
        for part in parts {
            let address = self.target.address + part.to as u64;
            let operation = Operation::Write(Target { address, key: self.target.key });
            let range = Some((&self.source, part.from, part.bytes));
            if !list.push(number, operation, range, false) {
                return false;
            }
            number += 1;
        }
        let is_signalled = number / SIGNAL_EVERY != self.posted / SIGNAL_EVERY;
        if is_signalled {
            list.signal_last();
        }
        self.posted = number;
        self.pair.post(list).is_ok()
    }

    /// Writes a range, and waits until the write is done.
    pub(super) fn write_and_wait(
        &mut self,
        offset: usize,
        bytes: usize,
        time_limit: Duration,
    ) -> RequestEnd {
        let mut list = SendList::new(&mut self.buffers);
        let address = self.target.address + offset as u64;
        let operation = Operation::Write(Target { address, key: self.target.key });
        let range = (bytes > 0).then_some((&self.source, offset, bytes));
        if !list.push(self.posted, operation, range, false) {
            return RequestEnd::NotYet;
        }
        list.signal_last();
        self.posted += 1;
        if self.pair.post(list).is_err() {
            return RequestEnd::With(WorkStatus::Flushed);
        }
        self.wait(Instant::now() + time_limit)
    }

    /// Waits until all posts are done. The last post must have requested a completion.
    fn wait(&mut self, until: Instant) -> RequestEnd {
        loop {
            let is_news = self.take();
            match self.failed {
                Some(status) => return RequestEnd::With(status),
                None if self.done == self.posted => return RequestEnd::With(WorkStatus::Success),
                None if !is_news && Instant::now() > until => return RequestEnd::NotYet,
                None => {}
            }
        }
    }

    /// Takes completions; yields the processor if there are none.
    fn take(&mut self) -> bool {
        let mut batch = [Completion::default(); BATCH];
        let taken = match self.completions.take(&mut batch) {
            Ok(taken) => taken,
            Err(_) => {
                self.failed.get_or_insert(WorkStatus::Flushed);
                0
            }
        };
        for completion in &batch[..taken] {
            match WorkStatus::from_raw(completion.status) {
                WorkStatus::Success => self.done = completion.name + 1,
                status => {
                    self.failed.get_or_insert(status);
                }
            }
        }
        if taken == 0 {
            std::thread::sleep(Duration::from_micros(10));
        }
        taken > 0
    }

    /// Revokes the key with which the other end writes.
    pub(super) fn end_key(&mut self) {
        self.memory = None;
    }
}
