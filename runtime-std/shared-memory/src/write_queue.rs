//! The queue of writes from one process to another's regions: bytes that the writer owns and the
//! owner of the regions reads.
//!
//! Memory that is shared cannot be revoked. A mapping could be withdrawn, but only by the process
//! that has it: the kernel takes no page away from a process that keeps its descriptor, and a stop
//! of that process, or a lie of it, would leave it a writer for ever. So no process ever writes
//! another's region. The writer puts its lists here, and the owner applies them one after the other
//! when it polls, each under the right that the writer has at that moment (TRM-8). A right is taken
//! back by a store in the owner's own memory, and final when that returns.
//!
//! Content is copied into the queue, and out of it: twice. Referring to the writer's memory instead
//! would save the first copy, and would let an owner that is late apply bytes that the writer has
//! changed since, after a cut or at the end of a view, when no completion keeps it from that.
//!
//! ```text
//! header page
//! 128 bytes          posted: bytes ever posted; all ones once nothing more is to be taken
//! 2^18 to 2^22       lists, each in one piece: a list that would wrap starts at the front, and a
//!                    word of all ones says so
//!
//! a list             bytes of the list | region | writes     a word: 32, 16, 16 bits
//!                    the number of the right that it was posted by
//!                    for each write: offset in the region; bytes
//!                    for each write its bytes, as far behind a multiple of 8 as they go to
//! ```
//!
//! # Invariants
//! - `posted` is stored with release behind the lists that it speaks for.
//! - The room of a list is used again only once the owner has taken it.
//! - Nothing here is trusted by its reader: every number is compared with what can be before it is
//!   used, and copies are within the ring and the region whatever it says.

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

/// Bytes of lists that may wait, at least: some thousand entries of a log, so that an owner which
/// does not run for a while finds much to do at once.
const RING_BYTES_MIN: usize = 1 << 18;

/// The same, at most: sixteen writes of 64 KiB, twice, and some more.
const RING_BYTES_MAX: usize = 1 << 22;

/// A queue of which all is taken starts at the front again once so much of it was used: what is
/// used again is in the caches.
const HOT_BYTES: usize = 1 << 15;

const WRITE_HEADER_BYTES: usize = 16;
const LIST_HEADER_BYTES: usize = 16;
/// With what each write may lose to alignment.
const LIST_HEADER_BYTES_MAX: usize = LIST_HEADER_BYTES + WRITES_MAX * (WRITE_HEADER_BYTES + 16);

const RING_AT: usize = HEADER_BYTES + 2 * CACHE_LINE;

/// In `posted`: nothing more is to be taken. In the place of a list: the next one is at the front.
const ALL_ONES: u64 = u64::MAX;

/// A list that no writer of this program can have posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// Bytes of the ring of a process whose own regions are so long together: its peers' are as long,
/// and hold entries as large.
pub(super) fn ring_bytes(regions: usize) -> usize {
    let half = (regions / 2).checked_next_power_of_two().unwrap_or(RING_BYTES_MAX);
    half.clamp(RING_BYTES_MIN, RING_BYTES_MAX)
}

/// The most bytes of a list's writes together, in a ring of that size.
pub(super) const fn list_bytes_max(ring_bytes: usize) -> usize {
    ring_bytes / 2 - LIST_HEADER_BYTES_MAX
}

/// Where a count of bytes is in a ring, whose size is a power of two.
#[inline]
fn place_of(count: u64, ring_bytes: usize) -> usize {
    // Below the ring's size.
    usize::try_from(count & (ring_bytes as u64 - 1)).unwrap_or(0)
}

/// The room of a write's bytes in a list.
const fn room_of(target_offset: usize, length: usize) -> usize {
    (target_offset % 8 + length).next_multiple_of(8)
}

fn posted_of(map: &Map) -> &AtomicU64 {
    map.cell(HEADER_BYTES)
}

/// A queue, from its writer's side.
#[derive(Debug)]
pub(super) struct QueueWriter {
    map: Map,
    /// Until the peer has it.
    file: Option<OwnedFd>,
    serial: u64,
    ring_bytes: usize,
    posted: u64,
    /// How much of it the owner has taken at least.
    taken: u64,
}

/// A list, as its writer has it: the memory that each write comes from has been looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'l> {
    pub(super) writes: &'l [Write],
    pub(super) region: RegionIndex,
    pub(super) right: Right,
}

impl QueueWriter {
    /// An empty queue.
    pub(super) fn new(residence: &Residence, ring_bytes: usize) -> Result<Self, Error> {
        let SealedMemory { file, map } = SealedMemory::new(RING_AT + ring_bytes, Writers::Owner)?;
        let serial = residence.next_serial();
        Header::new(&map).write(&residence.maker(serial));
        Ok(Self { map, file: Some(file), serial, ring_bytes, posted: 0, taken: 0 })
    }

    /// Whether the peer has it.
    pub(super) const fn is_sent(&self) -> bool {
        self.file.is_none()
    }

    /// Sends it to the peer; its descriptor goes then. True if it was sent.
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

    /// Bytes that were ever posted.
    pub(super) const fn posted(&self) -> u64 {
        self.posted
    }

    /// Knows how much the owner has taken, which it says: never less than before, and not more than
    /// there was.
    #[inline]
    pub(super) fn note_taken(&mut self, taken: u64) -> Result<(), Nonsense> {
        if !(self.taken..=self.posted).contains(&taken) {
            return Err(Nonsense);
        }
        self.taken = taken;
        Ok(())
    }

    /// Posts a list whose sources `source_of` finds and that was checked. Gives where the list
    /// starts; none if there is no room.
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

/// Nothing more is taken from a queue whose writer has given it up.
impl Drop for QueueWriter {
    fn drop(&mut self) {
        posted_of(&self.map).store(ALL_ONES, Ordering::Release);
        Header::new(&self.map).set_over();
    }
}

/// Writes a list into its place, all of which is free.
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

/// A list, as the owner of the region reads it: inside the ring, and that is all that was checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    /// Where it starts, counted from the queue's beginning.
    pub(super) start: u64,
    pub(super) region: u16,
    pub(super) right: Right,
    place: usize,
    bytes: usize,
    writes: usize,
}

/// A queue, from the side of the regions' owner.
#[derive(Debug)]
pub(super) struct QueueReader {
    map: Map,
    ring_bytes: usize,
    taken: u64,
}

impl QueueReader {
    /// A queue that a peer sent, if it is as long as a queue may be.
    pub(super) fn new(map: Map) -> Option<Self> {
        let ring_bytes = map.bytes().checked_sub(RING_AT)?;
        let is_ring =
            ring_bytes.is_power_of_two() && (RING_BYTES_MIN..=RING_BYTES_MAX).contains(&ring_bytes);
        is_ring.then_some(Self { map, ring_bytes, taken: 0 })
    }

    /// How much was taken.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// How much was posted; nothing more than was taken, if the writer gave the queue up.
    #[inline]
    pub(super) fn posted(&self) -> Result<u64, Nonsense> {
        let posted = posted_of(&self.map).load(Ordering::Acquire);
        if posted == ALL_ONES {
            return Ok(self.taken);
        }
        let waiting = posted.checked_sub(self.taken).ok_or(Nonsense)?;
        if waiting > self.ring_bytes as u64 { Err(Nonsense) } else { Ok(posted) }
    }

    /// Takes the next list of what was posted, if any.
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

    /// Applies a list to the own regions: all of it, or nothing if one of its writes is outside.
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
            // A writer that changes what it posted changes bytes, and no place: `copy_from` looks.
            let (offset, length) = self.header(at)?;
            memory.copy_from(offset, &ring, content + offset % 8, length).map_err(|_| Nonsense)?;
            content += room_of(offset, length);
        }
        Ok(())
    }

    /// The header of a write: where it goes, and how many bytes.
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
