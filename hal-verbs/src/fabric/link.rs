//! One connection to one peer: a queue pair, its credits, and the memory at both ends.

mod blocks;
mod memory;
mod message_places;
mod near_end;
mod probe;
mod region_updates;
mod request_list;
mod updates;

use std::io;

use tramontane_core::fabric::{Area, ErrorKind, Kind, Region, Token, Write};
use tramontane_core::ids::Rank;

use crate::adapter::{Access, MemoryRegion, Operation, QueuePairState, Route, SendBuffers, Target};
use crate::protocol::{Counters, Name, SendQueue};

pub(crate) use memory::{FarRing, OtherMemory};
use memory::{Sources, Targets, at, memory_of};
pub(crate) use message_places::MESSAGE_MEMORY_BYTES;
pub(crate) use near_end::{NearEnd, NearParts, Staging};
pub(crate) use request_list::Behind;
use request_list::RequestList;
pub(crate) use updates::Updates;

/// Maximum size of a guard in bytes: a cache line, which is more than the core posts.
pub(crate) const GUARD_BYTES_MAX: usize = 64;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// This member's row, which is written to the peer's copy of it, and all notices.
    Row,
    /// A region whose owner decides which peers may write, by its number in the list of regions.
    Region(u8),
    /// The blocks of a view.
    Blocks,
}

/// The addresses at the remote end, as the peer reported them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FarEnd {
    /// Path and numbers of the remote end; the packet number is that of epoch 0.
    pub(crate) route: Route,
    /// Memory at the remote end that may be written or read.
    pub(crate) target: Target,
    /// Length of that memory in bytes.
    pub(crate) bytes: usize,
}

/// One connection, as known to the polling thread. Its local end is absent while `crate::commands`
/// creates it, brings it up or destroys it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) queue: SendQueue,
    index: u16,
    pub(crate) peer: Rank,
    pub(crate) purpose: Purpose,
    region: Region,
    near: Option<NearEnd>,
}

impl Link {
    /// Creates a connection without its local end. Writes must name `region` as their target.
    pub(crate) const fn new(
        queue: SendQueue,
        index: u16,
        peer: Rank,
        purpose: Purpose,
        region: Region,
    ) -> Self {
        Self { queue, index, peer, purpose, region, near: None }
    }

    /// Returns the local end, while it is not in a worker's hands.
    pub(crate) const fn near(&self) -> Option<&NearEnd> {
        self.near.as_ref()
    }

    /// Stores the local end after it has been created or brought up.
    pub(crate) fn put(&mut self, near: NearEnd) {
        self.near = Some(near);
    }

    /// Removes the local end, so that it can be brought up or destroyed.
    pub(crate) const fn take(&mut self) -> Option<NearEnd> {
        self.near.take()
    }

    fn near_mut(&mut self) -> io::Result<&mut NearEnd> {
        self.near.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Returns the number of the queue pair, while the local end is present.
    pub(crate) fn number(&self) -> Option<u32> {
        self.near.as_ref().map(|near| near.card.number)
    }

    /// Returns whether the device reports the queue pair as failed, or does not answer.
    pub(crate) fn is_broken(&self) -> bool {
        let state = self.near.as_ref().map(|near| near.queue_pair.state());
        matches!(
            state,
            Some(QueuePairState::Error | QueuePairState::SendError | QueuePairState::Unknown)
        )
    }

    /// Uses another key for writes than the card's key, until the connection is re-established.
    pub(crate) const fn write_with(&mut self, key: u32) {
        if let Some(near) = &mut self.near {
            near.write_key = key;
        }
    }

    /// Brings the connection up again with the same remote end, in a later epoch.
    pub(crate) fn reconnect(&mut self, access: Access, epoch: u32) -> io::Result<()> {
        self.queue.forget();
        self.near_mut()?.reconnect(access, epoch)
    }

    /// Ends all traffic in both directions at once: nothing more lands here, and nothing more is
    /// read.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        self.queue.forget();
        self.near_mut()?.reset()
    }

    /// Reposts a receive for a notice or a message.
    pub(crate) fn repost(&mut self, name: Name) -> io::Result<()> {
        self.near_mut()?.repost(name)
    }

    /// Returns whether the connection can carry a write; `bytes_max` is the port's maximum message
    /// length.
    #[inline]
    pub(crate) fn fits(&self, write: &Write, bytes_max: usize) -> bool {
        let inside = |offset: usize, bytes: usize| {
            offset.checked_add(write.length).is_some_and(|end| end <= bytes)
        };
        let Some(NearEnd { far: Some(far), .. }) = &self.near else { return false };
        let is_short = match write.kind {
            Kind::Guard => write.length <= GUARD_BYTES_MAX,
            Kind::Content => write.length <= bytes_max,
        };
        let is_in_place = if write.target.region == self.region {
            self.has_own_area(write.source, write.length) && inside(write.target.offset, far.bytes)
        } else {
            let mut rings = self.near.iter().flat_map(|near| &near.rings);
            rings.any(|ring| ring.place(write).is_some())
        };
        is_in_place && is_short
    }

    /// Posts a list that fits and has room, with the request that follows it. Returns true if
    /// something was posted; a list without bytes is complete at once. The copies of the peers'
    /// rows, by rank, are the sources of what this member passes on.
    pub(crate) fn post_writes(
        &mut self,
        buffers: &mut SendBuffers,
        (writes, copies): (&[Write], &[Option<MemoryRegion>]),
        behind: Behind,
        token: Option<Token>,
        counters: &mut Counters,
    ) -> Result<bool, ErrorKind> {
        let Self { queue, near: Some(near), index, .. } = self else {
            return Err(ErrorKind::Other);
        };
        let NearEnd {
            queue_pair, far: Some(far), write_key, source, staging, others, rings, ..
        } = near
        else {
            return Err(ErrorKind::Other);
        };
        let inline_bytes_max = near.inline_bytes_max;
        let sources = Sources { own: (self.region, source), others, copies };
        let targets = Targets { own: Target { key: *write_key, ..far.target }, rings };
        let mut list = RequestList::new(buffers, *index, queue);
        for write in writes.iter().filter(|write| write.length > 0) {
            let inline = write.length <= inline_bytes_max;
            let source = sources.of(write.source.region)?;
            let (memory, offset) = if inline || write.kind == Kind::Content {
                (source, write.source.offset)
            } else {
                let staging = staging.as_ref().ok_or(ErrorKind::OutOfRange)?;
                counters.staged += 1;
                (&*staging.memory, stage(source, write, staging, queue.slot(list.next_number()))?)
            };
            let operation = Operation::Write(targets.of(write)?);
            list.push(operation, Some((memory, offset, write.length)), inline)?;
            counters.writes += 1;
            counters.inline += u64::from(inline);
            counters.bytes += u64::try_from(write.length).unwrap_or(0);
        }
        if list.is_empty() {
            return Ok(false);
        }
        list.push_notice(far.target, behind, counters)?;
        list.post(queue_pair, queue, behind == Behind::Completion, token, counters)?;
        Ok(true)
    }

    /// Posts one request without data: a notice, a read, or an empty request whose only purpose is
    /// a completion.
    pub(crate) fn post_one(
        &mut self,
        buffers: &mut SendBuffers,
        operation: impl FnOnce(Target) -> Operation,
        bytes: Option<(Area, usize)>,
        token: Option<Token>,
        is_signalled: bool,
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let Self { queue, near, index, .. } = self;
        let near = near.as_mut().ok_or(ErrorKind::Other)?;
        let far = near.far.ok_or(ErrorKind::Other)?;
        let NearEnd { queue_pair, source, others, .. } = near;
        let range = match bytes {
            None => None,
            Some((area, length)) => {
                let sources = Sources { own: (self.region, source), others, copies: &[] };
                Some((sources.of(area.region)?, area.offset, length))
            }
        };
        let mut list = RequestList::new(buffers, *index, queue);
        list.push(operation(far.target), range, false)?;
        list.post(queue_pair, queue, is_signalled, token, counters)
    }

    /// Returns the address of an area of this connection's region in the peer's memory, if it is
    /// within bounds.
    pub(crate) fn far_area(&self, offset: usize, length: usize) -> Option<Target> {
        let far = self.near.as_ref()?.far?;
        let end = offset.checked_add(length)?;
        if end > far.bytes {
            return None;
        }
        at(far.target, offset).ok()
    }

    /// Returns whether an area is within local memory from which the connection writes.
    #[inline]
    pub(crate) fn has_own_area(&self, area: Area, length: usize) -> bool {
        let Some(near) = &self.near else { return false };
        let bytes = if area.region == self.region {
            near.own_bytes
        } else {
            memory_of(&near.others, area.region).map_or(0, |other| other.bytes)
        };
        bytes > 0 && area.offset.checked_add(length).is_some_and(|end| end <= bytes)
    }
}

/// Copies a guard's current value to memory that the device reads later, and returns the offset
/// there.
fn stage(
    source: &MemoryRegion,
    write: &Write,
    staging: &Staging,
    slot: usize,
) -> Result<usize, ErrorKind> {
    let mut bytes = [0; GUARD_BYTES_MAX];
    let bytes = bytes.get_mut(..write.length).ok_or(ErrorKind::OutOfRange)?;
    let offset = staging.place(slot);
    let copied = source.pages().row().read(write.source.offset, bytes);
    let stored = staging.memory.pages().writer().apply(offset, bytes);
    if copied.is_err() || stored.is_err() {
        return Err(ErrorKind::OutOfRange);
    }
    Ok(offset)
}
