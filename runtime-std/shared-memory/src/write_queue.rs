//! The queue of writes from one process to another's regions. The writer owns its bytes, and the
//! owner of the regions reads them.
//!
//! Shared memory cannot be revoked. Only the process that has a mapping can remove it: the kernel
//! takes no page from a process that keeps its descriptor, so a process that stops or lies would
//! remain a writer forever. Therefore, no process ever writes to another's region. The writer puts
//! its lists into this queue, and the owner applies them in order when it polls, each under the
//! right that the writer has at that moment (TRM-8). A right is revoked by a store in the owner's
//! own memory, and the revocation is final when that store returns.
//!
//! Content is copied twice: into the queue, and out of it. References to the writer's memory would
//! save the first copy. But after a cut, or at the end of a view, no completion would keep a slow
//! owner from applying bytes that the writer has changed in the meantime.
//!
//! ```text
//! header page
//! 128 bytes          posted: bytes ever posted; all ones once nothing more may be taken
//! 2^18 to 2^22       lists, each contiguous: a list that would wrap starts at the front, after a
//!                    word of all ones
//!
//! a list             bytes of the list | region | writes     a word: 32, 16, 16 bits
//!                    the number of the right under which it was posted
//!                    for each write: offset in the region; bytes
//!                    for each write, its bytes, at the same offset modulo 8 as their target
//! ```
//!
//! # Invariants
//! - `posted` is stored with release after the lists that it covers.
//! - The space of a list is reused only after the owner has taken the list.
//! - The reader trusts nothing here: every number is checked against its limits before it is used,
//!   and copies stay within the ring and the region in any case.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use tramontane_core::fabric::{RegionMemory as _, WRITES_MAX, Write};
use tramontane_core::ids::ViewId;
use tramontane_core::layout::CACHE_LINE;
use tramontane_core::memory::{Row, RowWriter};

use super::descriptors::Subject;
use super::error::Error;
use super::header::{HEADER_BYTES, Header};
use super::map::Map;
use super::peer::Peer;
use super::region_lanes::Right;
use super::region_memory::{OwnRegions, RegionIndex};
use super::residence::Residence;
use super::sealed::{SealedMemory, Writers};

/// Minimum size of a ring: room for some thousand entries of a log, so that an owner that does not
/// run for a while finds many to apply at once.
const RING_BYTES_MIN: usize = 1 << 18;

/// Maximum size of a ring: twice sixteen writes of 64 KiB, and a reserve.
const RING_BYTES_MAX: usize = 1 << 22;

/// Number of bytes after which an empty queue restarts at the front, so that it reuses memory that
/// is in the caches.
const HOT_BYTES: usize = 1 << 15;

const WRITE_HEADER_BYTES: usize = 16;
const LIST_HEADER_BYTES: usize = 16;
/// Maximum size of a list's header, including the bytes that each write may lose to alignment.
const LIST_HEADER_BYTES_MAX: usize = LIST_HEADER_BYTES + WRITES_MAX * (WRITE_HEADER_BYTES + 16);

const RING_AT: usize = HEADER_BYTES + 2 * CACHE_LINE;

/// A special value. In `posted`, it says that nothing more may be taken. In place of a list, it
/// says that the next list is at the front.
const ALL_ONES: u64 = u64::MAX;

/// The error for a list that no writer of this program can have posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// Returns the size in bytes of a process's ring, given the total size of its regions. Its peers'
/// regions are as large, and hold entries of the same size.
pub(super) fn ring_bytes(regions: usize) -> usize {
    let half = (regions / 2).checked_next_power_of_two().unwrap_or(RING_BYTES_MAX);
    half.clamp(RING_BYTES_MIN, RING_BYTES_MAX)
}

/// Returns the maximum number of bytes in a list, in a ring of that size.
pub(super) const fn list_bytes_max(ring_bytes: usize) -> usize {
    ring_bytes / 2 - LIST_HEADER_BYTES_MAX
}

/// Returns the offset of a count of bytes in a ring, whose size is a power of two.
#[inline]
fn place_of(count: u64, ring_bytes: usize) -> usize {
    // The value is below the ring's size.
    usize::try_from(count & (ring_bytes as u64 - 1)).unwrap_or(0)
}

/// Returns the space that a write's bytes take in a list.
const fn room_of(target_offset: usize, length: usize) -> usize {
    (target_offset % 8 + length).next_multiple_of(8)
}

fn posted_of(map: &Map) -> &AtomicU64 {
    map.cell(HEADER_BYTES)
}

/// A queue, seen by its writer.
#[derive(Debug)]
pub(super) struct QueueWriter {
    map: Map,
    /// Kept until the peer has it.
    file: Option<OwnedFd>,
    serial: u64,
    ring_bytes: usize,
    posted: u64,
    /// Minimum number of bytes of the queue that the owner has taken.
    taken: u64,
}

/// A list that its writer posts. The memory of each write's source has already been found.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'l> {
    pub(super) writes: &'l [Write],
    pub(super) region: RegionIndex,
    pub(super) right: Right,
}

impl QueueWriter {
    /// Creates an empty queue.
    pub(super) fn new(residence: &Residence, ring_bytes: usize) -> Result<Self, Error> {
        let SealedMemory { file, map } = SealedMemory::new(RING_AT + ring_bytes, Writers::Owner)?;
        let serial = residence.next_serial();
        Header::new(&map).write(&residence.maker(serial));
        Ok(Self { map, file: Some(file), serial, ring_bytes, posted: 0, taken: 0 })
    }

    /// Returns whether the peer has the queue.
    pub(super) const fn is_sent(&self) -> bool {
        self.file.is_none()
    }

    /// Sends the queue to the peer, and closes its descriptor. Returns true if it was sent.
    pub(super) fn send_to(
        &mut self,
        residence: &Residence,
        peer: &Peer,
        view: ViewId,
    ) -> rustix::io::Result<bool> {
        let Some(file) = &self.file else { return Ok(true) };
        let subject = Subject::Queue { view, serial: self.serial };
        let is_sent = residence.send(peer, subject, file.as_fd())?;
        if is_sent {
            self.file = None;
        }
        Ok(is_sent)
    }

    /// Returns the number of bytes ever posted.
    pub(super) const fn posted(&self) -> u64 {
        self.posted
    }

    /// Notes the number of bytes that the owner claims to have taken, which must be at least the
    /// last value and at most the number posted.
    #[inline]
    pub(super) fn note_taken(&mut self, taken: u64) -> Result<(), Nonsense> {
        if !(self.taken..=self.posted).contains(&taken) {
            return Err(Nonsense);
        }
        self.taken = taken;
        Ok(())
    }

    /// Posts a checked list, whose sources `source_of` finds. Returns the start of the list, or
    /// `None` if there is no room.
    #[inline]
    pub(super) fn post<'s>(
        &mut self,
        list: List<'_>,
        source_of: impl Fn(&Write) -> Option<Row<'s>>,
    ) -> Option<u64> {
        let room = |write: &Write| room_of(write.target.offset, write.length) + WRITE_HEADER_BYTES;
        let bytes = LIST_HEADER_BYTES + list.writes.iter().map(room).sum::<usize>();
        let waiting = self.posted - self.taken;
        let (place, free) = (self.place(self.posted), self.ring_bytes as u64 - waiting);
        let to_end = self.ring_bytes - place;
        let is_cold = waiting == 0 && place >= HOT_BYTES && bytes <= place;
        let skipped = if bytes > to_end || is_cold { to_end } else { 0 };
        if (skipped + bytes) as u64 > free {
            return None;
        }
        let ring = self.ring();
        if skipped > 0 {
            ring.cell(place).ok()?.publish(ALL_ONES);
        }
        let start = self.posted + skipped as u64;
        fill(&ring, self.place(start), bytes, list, source_of)?;
        self.posted = start + bytes as u64;
        posted_of(&self.map).store(self.posted, Ordering::Release);
        Some(start)
    }

    #[inline]
    fn place(&self, count: u64) -> usize {
        place_of(count, self.ring_bytes)
    }

    fn ring(&self) -> RowWriter<'_> {
        // SAFETY: mapped writable in one piece as long as the map lives, which `self` keeps; it
        // starts on a cache line. Its reader reads it through core's types.
        unsafe { RowWriter::from_raw(self.map.base().add(RING_AT), self.ring_bytes) }
    }
}

/// Nothing more is taken from a queue that its writer has given up.
impl Drop for QueueWriter {
    fn drop(&mut self) {
        posted_of(&self.map).store(ALL_ONES, Ordering::Release);
        Header::new(&self.map).set_over();
    }
}

/// Writes a list into its space, all of which is free.
fn fill<'s>(
    ring: &RowWriter<'_>,
    place: usize,
    bytes: usize,
    list: List<'_>,
    source_of: impl Fn(&Write) -> Option<Row<'s>>,
) -> Option<()> {
    let store = |at: usize, word: u64| ring.cell(at).ok().map(|cell| cell.publish(word));
    let about = bytes as u64 | (list.region.0 as u64) << 32 | (list.writes.len() as u64) << 48;
    store(place, about)?;
    store(place + 8, list.right.0)?;
    let mut at = place + LIST_HEADER_BYTES;
    let mut content = at + list.writes.len() * WRITE_HEADER_BYTES;
    for write in list.writes {
        store(at, write.target.offset as u64)?;
        store(at + 8, write.length as u64)?;
        let behind = write.target.offset % 8;
        let source = source_of(write)?;
        ring.copy_from(content + behind, &source, write.source.offset, write.length).ok()?;
        at += WRITE_HEADER_BYTES;
        content += room_of(write.target.offset, write.length);
    }
    Some(())
}

/// A list, as the owner of the region reads it. It is only checked to be inside the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    /// Position of the list's start, counted from the queue's beginning.
    pub(super) start: u64,
    pub(super) region: u16,
    pub(super) right: Right,
    place: usize,
    bytes: usize,
    writes: usize,
}

/// A queue, seen by the owner of the regions.
#[derive(Debug)]
pub(super) struct QueueReader {
    map: Map,
    ring_bytes: usize,
    taken: u64,
}

impl QueueReader {
    /// Wraps a queue that a peer sent, if its length is valid.
    pub(super) fn new(map: Map) -> Option<Self> {
        let ring_bytes = map.bytes().checked_sub(RING_AT)?;
        let is_ring =
            ring_bytes.is_power_of_two() && (RING_BYTES_MIN..=RING_BYTES_MAX).contains(&ring_bytes);
        is_ring.then_some(Self { map, ring_bytes, taken: 0 })
    }

    /// Returns the number of bytes taken so far.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the number of bytes posted so far. If the writer has given up the queue, this is the
    /// number of bytes taken.
    #[inline]
    pub(super) fn posted(&self) -> Result<u64, Nonsense> {
        let posted = posted_of(&self.map).load(Ordering::Acquire);
        if posted == ALL_ONES {
            return Ok(self.taken);
        }
        let waiting = posted.checked_sub(self.taken).ok_or(Nonsense)?;
        if waiting > self.ring_bytes as u64 { Err(Nonsense) } else { Ok(posted) }
    }

    /// Takes the next posted list, if any.
    #[inline]
    pub(super) fn next(&mut self, posted: u64) -> Result<Option<Posted>, Nonsense> {
        if self.taken == posted {
            return Ok(None);
        }
        let mut place = place_of(self.taken, self.ring_bytes);
        let mut about = self.word(place)?;
        if about == ALL_ONES {
            self.taken += (self.ring_bytes - place) as u64;
            place = 0;
            about = self.word(place)?;
        }
        let start = self.taken;
        let [bytes, region, writes] = [about & 0xffff_ffff, about >> 32 & 0xffff, about >> 48];
        let waiting = posted.checked_sub(start).ok_or(Nonsense)?;
        let (room, least) = ((self.ring_bytes - place) as u64, LIST_HEADER_BYTES as u64);
        let is_list = (least..=room.min(waiting)).contains(&bytes) && bytes % 8 == 0;
        if !is_list || writes > WRITES_MAX as u64 {
            return Err(Nonsense);
        }
        self.taken = start + bytes;
        let right = Right(self.word(place + 8)?);
        let small = |number: u64| usize::try_from(number).map_err(|_| Nonsense);
        let region = u16::try_from(region).map_err(|_| Nonsense)?;
        Ok(Some(Posted {
            start,
            region,
            right,
            place,
            bytes: small(bytes)?,
            writes: small(writes)?,
        }))
    }

    /// Applies a list to the local regions: completely, or not at all if one of its writes is out
    /// of range.
    #[inline]
    pub(super) fn apply(&self, list: &Posted, own: &OwnRegions) -> Result<(), Nonsense> {
        let index = usize::from(list.region);
        let memory = own.get(index).and_then(Option::as_ref).ok_or(Nonsense)?.writer();
        let ring = self.ring();
        let end = list.place + list.bytes;
        let each = || (0..list.writes).map(|write| list.place + LIST_HEADER_BYTES + write * 16);
        let first = list.place + LIST_HEADER_BYTES + list.writes * WRITE_HEADER_BYTES;
        let mut content = first;
        for at in each() {
            let (offset, length) = self.header(at)?;
            let is_inside = offset.checked_add(length).is_some_and(|end| end <= memory.bytes());
            content += if is_inside { room_of(offset, length) } else { return Err(Nonsense) };
        }
        if content > end {
            return Err(Nonsense);
        }
        content = first;
        for at in each() {
            // A writer that changes a posted list can change bytes, but no location: `copy_from`
            // checks the range.
            let (offset, length) = self.header(at)?;
            memory.copy_from(offset, &ring, content + offset % 8, length).map_err(|_| Nonsense)?;
            content += room_of(offset, length);
        }
        Ok(())
    }

    /// Returns the header of a write: its target offset and its length in bytes.
    #[inline]
    fn header(&self, at: usize) -> Result<(usize, usize), Nonsense> {
        let small = |number: u64| usize::try_from(number).map_err(|_| Nonsense);
        let (offset, length) = (small(self.word(at)?)?, small(self.word(at + 8)?)?);
        if length > self.ring_bytes { Err(Nonsense) } else { Ok((offset, length)) }
    }

    #[inline]
    fn word(&self, place: usize) -> Result<u64, Nonsense> {
        Ok(self.ring().cell(place).map_err(|_| Nonsense)?.load())
    }

    #[inline]
    fn ring(&self) -> Row<'_> {
        // SAFETY: mapped in one piece as long as the map lives, which `self` keeps; it starts on a
        // cache line. Its writer writes it through core's types.
        unsafe { Row::from_raw(self.map.base().add(RING_AT), self.ring_bytes) }
    }
}

#[cfg(test)]
mod tests;
