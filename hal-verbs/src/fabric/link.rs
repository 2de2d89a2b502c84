//! One connection to one peer: a queue pair, its credits, and the memory at both of its ends.

mod blocks;

use std::io;
use std::sync::Arc;

use tramontane_core::fabric::{ErrorKind, Kind, Region, Token, Write};
use tramontane_core::ids::Rank;

use crate::ffi::{Access, MemoryRegion, Operation, Pages, ProtectionDomain, QueuePair, Route};
use crate::ffi::{SendBuffers, SendList, SendTimes, Target};
use crate::protocol::{Counters, Name, SendQueue};
use blocks::receive_range;

pub(crate) use blocks::message_memory_bytes;

/// The longest guard: a cache line, and more than any that the core posts.
pub(crate) const GUARD_BYTES_MAX: usize = 64;

/// How far a reset moves the first packet's number, so that packets from before are not taken for
/// new ones.
const EPOCH_STRIDE: u32 = 0x10_0001;
const PACKET_MASK: u32 = 0x00ff_ffff;

/// How often a connection is brought up at most. A packet that came before the reset and is looked
/// at after it breaks what is just coming up: seen on a device in software, once in some fifty
/// times.
const TRIES: u32 = 5;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The own row, to the peer's copy of it; and all notices.
    Row,
    /// A region whose owner decides which peers may write, by its number in the list of regions.
    Region(u8),
    /// Blocks.
    Blocks,
}

/// What goes behind a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    /// A notice, by its immediate value.
    Notice(u32),
    /// A completion, whether anybody asked for one or not.
    Completion,
}

/// Where the other end is, as it said itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FarEnd {
    /// Way and numbers; the packet number is that of epoch 0.
    pub(crate) route: Route,
    /// Memory that may be written or read.
    pub(crate) target: Target,
    /// How much of it.
    pub(crate) bytes: usize,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    queue_pair: QueuePair,
    pub(crate) queue: SendQueue,
    index: u16,
    pub(crate) peer: Rank,
    pub(crate) purpose: Purpose,
    region: Region,
    times: SendTimes,
    far: Option<FarEnd>,
    source: Arc<MemoryRegion>,
    staged: Option<MemoryRegion>,
    inline_bytes_max: usize,
}

/// What a new connection is made from.
pub(crate) struct LinkParts {
    pub(crate) queue_pair: QueuePair,
    pub(crate) queue: SendQueue,
    pub(crate) index: u16,
    pub(crate) peer: Rank,
    pub(crate) purpose: Purpose,
    /// What writes must name as their source and target.
    pub(crate) region: Region,
    pub(crate) times: SendTimes,
    pub(crate) source: Arc<MemoryRegion>,
    /// Bytes that go inline; what the queue pair takes is a limit on top.
    pub(crate) inline_bytes_max: Option<u32>,
}

impl Link {
    pub(crate) fn new(parts: LinkParts) -> Self {
        let LinkParts {
            queue_pair,
            queue,
            index,
            peer,
            purpose,
            region,
            times,
            source,
            inline_bytes_max,
        } = parts;
        let granted = queue_pair.inline_bytes_max();
        let inline = inline_bytes_max.map_or(granted, |wanted| wanted.min(granted));
        let inline_bytes_max = usize::try_from(inline).unwrap_or(0);
        Self {
            queue_pair,
            queue,
            index,
            peer,
            purpose,
            region,
            times,
            far: None,
            source,
            staged: None,
            inline_bytes_max,
        }
    }

    /// Makes room for guards that do not go inline, and for messages. Without it they are refused.
    pub(crate) fn stage_guards(
        &mut self,
        domain: &Arc<ProtectionDomain>,
        depth: u32,
    ) -> io::Result<()> {
        let bytes = usize::try_from(depth).unwrap_or(0) * GUARD_BYTES_MAX;
        let pages = Arc::new(Pages::new(bytes)?);
        self.staged = Some(MemoryRegion::new(domain, &pages, bytes, Access::empty())?);
        Ok(())
    }

    /// Asks for at most so many reads at once: what the other end serves.
    pub(crate) fn limit_reads(&mut self, most: u8) {
        self.times.reads_max = self.times.reads_max.min(most);
    }

    /// The state, as the device says.
    pub(crate) fn state_name(&self) -> &'static str {
        self.queue_pair.state().name()
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.queue_pair.state() != crate::ffi::State::ReadyToSend
    }

    /// Brings the connection up, from reset, in its first or a later epoch: both ends must name the
    /// same.
    pub(crate) fn connect(
        &mut self,
        far: FarEnd,
        access: Access,
        receives: u64,
        epoch: u32,
    ) -> io::Result<()> {
        let shift = epoch.wrapping_mul(EPOCH_STRIDE);
        let route = Route {
            remote_packet: far.route.remote_packet.wrapping_add(shift) & PACKET_MASK,
            ..far.route
        };
        let times = SendTimes {
            first_packet: self.times.first_packet.wrapping_add(shift) & PACKET_MASK,
            ..self.times
        };
        self.queue_pair.initialise(route.port, access)?;
        for number in 0..receives {
            self.repost(Name::receive(self.index, number))?;
        }
        self.queue_pair.connect(&route)?;
        self.queue_pair.start(&times)?;
        self.far = Some(far);
        Ok(())
    }

    /// Brings the connection up again at the same other end. Only for one without receives: some
    /// devices keep those of before a reset, and others do not.
    pub(crate) fn reconnect(&mut self, access: Access, epoch: u32) -> io::Result<()> {
        let far = self.far.ok_or(io::ErrorKind::NotConnected)?;
        let mut tries = TRIES;
        loop {
            self.reset()?;
            match self.connect(far, access, 0, epoch) {
                Err(_) if tries > 1 => tries -= 1,
                result => return result,
            }
        }
    }

    /// Ends all traffic, both ways, at once: nothing more lands here, and nothing more is read.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        self.queue.forget();
        self.queue_pair.reset()
    }

    pub(crate) fn set_access(&mut self, access: Access) -> io::Result<()> {
        self.queue_pair.set_access(access)
    }

    /// Posts a receive for a notice or a message, at the start or again.
    pub(crate) fn repost(&mut self, name: Name) -> io::Result<()> {
        self.queue_pair.post_receive(name.raw(), receive_range(self.purpose, &self.source, name))
    }

    /// Whether a write can be carried; `bytes_max` is the longest that the port takes.
    #[inline]
    pub(crate) fn fits(&self, write: &Write, bytes_max: usize) -> bool {
        let inside = |offset: usize, bytes: usize| {
            offset.checked_add(write.length).is_some_and(|end| end <= bytes)
        };
        let far_bytes = self.far.map_or(0, |far| far.bytes);
        let is_short = match write.kind {
            Kind::Guard => write.length <= GUARD_BYTES_MAX,
            Kind::Content => write.length <= bytes_max,
        };
        write.source.region == self.region
            && write.target.region == self.region
            && inside(write.source.offset, self.source.bytes())
            && inside(write.target.offset, far_bytes)
            && is_short
    }

    /// Posts a list that fits and for which there is room, with what is to go behind it. True if
    /// something was posted: a list without bytes is done at once.
    pub(crate) fn post_writes(
        &mut self,
        buffers: &mut SendBuffers,
        writes: &[Write],
        behind: Behind,
        token: Option<Token>,
        counters: &mut Counters,
    ) -> Result<bool, ErrorKind> {
        let Some(far) = self.far else { return Err(ErrorKind::Other) };
        let Self { queue_pair, queue, source, staged, .. } = self;
        let mut list = SendList::new(buffers);
        let mut number = queue.posted();
        for write in writes.iter().filter(|write| write.length > 0) {
            let operation = Operation::Write(at(far.target, write.target.offset)?);
            let inline = write.length <= self.inline_bytes_max;
            let (memory, offset) = if inline || write.kind == Kind::Content {
                (&**source, write.source.offset)
            } else {
                let staged = staged.as_ref().ok_or(ErrorKind::OutOfRange)?;
                counters.staged += 1;
                (staged, stage(source, write, staged, queue.slot(number))?)
            };
            let name = Name::send(self.index, number).raw();
            if !list.push(name, operation, Some((memory, offset, write.length)), inline) {
                return Err(ErrorKind::OutOfRange);
            }
            counters.writes += 1;
            counters.inline += u64::from(inline);
            counters.bytes += u64::try_from(write.length).unwrap_or(0);
            number += 1;
        }
        if list.is_empty() {
            return Ok(false);
        }
        if let Behind::Notice(notice) = behind {
            let operation = Operation::WriteWithImmediate(far.target, notice);
            list.push(Name::send(self.index, number).raw(), operation, None, false);
            number += 1;
            counters.notices_sent += 1;
        }
        let requests = number - queue.posted();
        let is_signalled = queue.signals(requests, token.is_some() || behind == Behind::Completion);
        if is_signalled {
            list.signal_last();
            counters.signalled += 1;
        }
        counters.doorbells += 1;
        queue.push(requests, is_signalled, token);
        queue_pair.post(list).map_err(|_| ErrorKind::PeerLost)?;
        Ok(true)
    }

    /// Posts one request that is no data: a notice, a read; or nothing at all, to have a
    /// completion.
    pub(crate) fn post_one(
        &mut self,
        buffers: &mut SendBuffers,
        operation: impl FnOnce(Target) -> Operation,
        bytes: Option<(usize, usize)>,
        token: Option<Token>,
        is_signalled: bool,
        counters: &mut Counters,
    ) -> io::Result<()> {
        let far = self.far.ok_or(io::ErrorKind::NotConnected)?;
        let Self { queue_pair, queue, source, index, .. } = self;
        let range = bytes.map(|(offset, length)| (&**source, offset, length));
        let operation = operation(far.target);
        let request = Request { operation, range, is_inline: false, token, is_signalled };
        post_request(queue_pair, queue, *index, buffers, request, counters)
    }

    /// Where in the peer's memory an area of this connection's region lies, if it does.
    pub(crate) fn far_area(&self, offset: usize, length: usize) -> Option<Target> {
        let far = self.far?;
        let end = offset.checked_add(length)?;
        if end > far.bytes {
            return None;
        }
        at(far.target, offset).ok()
    }

    /// Whether an area lies in the own memory of this connection.
    pub(crate) fn has_own_area(&self, offset: usize, length: usize) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.source.bytes())
    }

    /// How many bytes of own memory it has.
    pub(crate) fn own_bytes(&self) -> usize {
        self.source.bytes()
    }
}

/// One request that goes by itself.
struct Request<'r> {
    operation: Operation,
    range: Option<(&'r MemoryRegion, usize, usize)>,
    is_inline: bool,
    token: Option<Token>,
    /// A completion is wanted in any case.
    is_signalled: bool,
}

fn post_request(
    queue_pair: &mut QueuePair,
    queue: &mut SendQueue,
    index: u16,
    buffers: &mut SendBuffers,
    request: Request<'_>,
    counters: &mut Counters,
) -> io::Result<()> {
    let Request { operation, range, is_inline, token, is_signalled } = request;
    let mut list = SendList::new(buffers);
    if !list.push(Name::send(index, queue.posted()).raw(), operation, range, is_inline) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let is_signalled = is_signalled || queue.signals(1, token.is_some());
    if is_signalled {
        list.signal_last();
        counters.signalled += 1;
    }
    counters.doorbells += 1;
    queue.push(1, is_signalled, token);
    queue_pair.post(list)
}

/// A place in the peer's memory.
fn at(start: Target, offset: usize) -> Result<Target, ErrorKind> {
    let offset = u64::try_from(offset).map_err(|_| ErrorKind::OutOfRange)?;
    let address = start.address.checked_add(offset).ok_or(ErrorKind::OutOfRange)?;
    Ok(Target { address, key: start.key })
}

/// Copies a guard, as it is now, to where the device reads it later; gives the offset there.
fn stage(
    source: &MemoryRegion,
    write: &Write,
    staged: &MemoryRegion,
    slot: usize,
) -> Result<usize, ErrorKind> {
    let mut bytes = [0; GUARD_BYTES_MAX];
    let bytes = bytes.get_mut(..write.length).ok_or(ErrorKind::OutOfRange)?;
    let offset = slot * GUARD_BYTES_MAX;
    let copied = source.pages().row().read(write.source.offset, bytes);
    let stored = staged.pages().writer().apply(offset, bytes);
    if copied.is_err() || stored.is_err() {
        return Err(ErrorKind::OutOfRange);
    }
    Ok(offset)
}
