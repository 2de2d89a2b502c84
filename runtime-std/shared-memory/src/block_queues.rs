//! A member's block queues, which contain its messages to peers about blocks. They follow the
//! member's row in the same memory.
//!
//! Only their owner writes to them. A peer reads its own lane and the list of closed channels. All
//! of the memory starts as zeros, and lasts as long as the view.
//!
//! ```text
//! 128 bytes          closed channels, one bit each
//! then for each member, in rank order, a lane:
//!   a line           ended: not zero once nothing more may be taken from this lane;
//!                    posted: entries ever posted
//!   a line           taken: entries ever taken from the peer's lane;
//!                    settled: answers ever given to the peer
//!   128 x 32 bytes   entries: blocks that the owner offers to the peer, a ring
//!   512 x 8 bytes    answers: the outcomes of the peer's entries, a ring
//! ```
//!
//! # Invariants
//! - A count is stored with release after the data that it counts, and loaded with acquire.
//! - The slot of an entry is reused only after the peer has taken the entry, and the slot of an
//!   answer only after the sender has seen it, because there are never more sends in flight than
//!   slots for answers.
//! - **A close is seen before the memory changes.** A member that closes a channel or ends a lane
//!   then issues a full fence, and changes block memory only after that. A member that has copied a
//!   block checks both marks again after the copy, and discards the copy if either is set. So it
//!   never accepts bytes that changed during the copy. This is a sequence lock whose sequence
//!   changes once.
//! - The reader trusts nothing here: every number is checked against its limits before it is used.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use tramontane_core::fabric::Channel;
use tramontane_core::ids::Rank;
use tramontane_core::layout::CACHE_LINE;

use super::map::Map;

/// The number of channels per view.
pub(super) const CHANNELS: u16 = 1024;

/// The maximum number of entries to one peer that the peer has not taken yet.
pub(super) const ENTRIES: u64 = 128;

/// The maximum number of sends in flight to one peer.
pub(super) const SENDS: u64 = 512;

const CLOSED_BYTES: usize = CHANNELS as usize / 8;
const ENTRY_BYTES: usize = 32;
const ENTRIES_BYTES: usize = ENTRY_BYTES * ENTRIES as usize;
const ENTRIES_AT: usize = 2 * CACHE_LINE;
const ANSWERS_AT: usize = ENTRIES_AT + ENTRIES_BYTES;
const LANE_BYTES: usize = ANSWERS_AT + 8 * SENDS as usize;

/// Returns the size, in bytes, of a member's block queues in a group of `members` members.
pub(super) const fn bytes(members: usize) -> usize {
    CLOSED_BYTES.saturating_add(members.saturating_mul(LANE_BYTES))
}

/// An offered block, with its location and its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OfferedBlock {
    /// The serial number of the sender's block memory, which is never reused.
    pub(super) memory: u64,
    /// The offset from the start of that memory.
    pub(super) offset: u64,
    /// The length in bytes.
    pub(super) length: u64,
    /// Which channel.
    pub(super) channel: u16,
    /// The ticket returned with the answer; below [`SENDS`].
    pub(super) ticket: u16,
    /// The immediate value chosen by the sender.
    pub(super) immediate: u32,
}

/// The outcome of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueAnswer {
    /// The ticket of the entry.
    pub(super) ticket: u16,
    /// Whether there was a receive for the block.
    pub(super) is_taken: bool,
}

const REFUSED: u64 = 1 << 32;

/// The block queues of a member, seen from either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockQueues<'m> {
    map: &'m Map,
    at: usize,
}

impl<'m> BlockQueues<'m> {
    /// Returns the block queues at an offset of the mapping, which must completely contain them.
    pub(super) const fn new(map: &'m Map, at: usize) -> Self {
        Self { map, at }
    }

    /// Returns the lane between the owner and `peer`.
    pub(super) fn lane(self, peer: Rank) -> Lane<'m> {
        Lane { map: self.map, at: self.at + CLOSED_BYTES + peer.index() * LANE_BYTES }
    }

    /// Returns whether the owner has closed a channel. Returns false for a channel that does not
    /// exist.
    pub(super) fn is_closed(self, channel: Channel) -> bool {
        channel.0 < CHANNELS && self.word(channel).load(Ordering::Relaxed) & bit(channel) != 0
    }

    /// Closes a channel. Once this returns, memory may change. Called by the owner.
    pub(super) fn close(self, channel: Channel) {
        if channel.0 < CHANNELS {
            let word = self.word(channel);
            word.store(word.load(Ordering::Relaxed) | bit(channel), Ordering::Release);
            fence(Ordering::SeqCst);
        }
    }

    fn word(self, channel: Channel) -> &'m AtomicU64 {
        self.map.cell(self.at + usize::from(channel.0) / 64 * 8)
    }
}

const fn bit(channel: Channel) -> u64 {
    1 << (channel.0 % 64)
}

/// An owner's messages to one peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane<'m> {
    map: &'m Map,
    at: usize,
}

impl<'m> Lane<'m> {
    /// Returns whether nothing more may be taken from this lane.
    pub(super) fn is_ended(self) -> bool {
        self.map.cell(self.at).load(Ordering::Relaxed) != 0
    }

    /// Ends the lane. Once this returns, memory may change. Called by the owner.
    pub(super) fn end(self) {
        self.map.cell(self.at).store(1, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Returns the total number of entries posted so far.
    pub(super) fn posted(self) -> u64 {
        self.map.cell(self.at + 8).load(Ordering::Acquire)
    }

    /// Returns the total number of entries that the owner has taken from the peer's lane.
    pub(super) fn taken(self) -> u64 {
        self.map.cell(self.at + CACHE_LINE).load(Ordering::Acquire)
    }

    /// Publishes the number of entries taken. Called by the owner.
    pub(super) fn set_taken(self, count: u64) {
        self.map.cell(self.at + CACHE_LINE).store(count, Ordering::Release);
    }

    /// Returns the total number of answers that the owner has given the peer.
    pub(super) fn settled(self) -> u64 {
        self.map.cell(self.at + CACHE_LINE + 8).load(Ordering::Acquire)
    }

    /// Returns the entry with number `count`, which must have been posted.
    pub(super) fn entry(self, count: u64) -> OfferedBlock {
        let cells = self.entry_cells(count);
        let [memory, offset, length, about] = cells.map(|cell| cell.load(Ordering::Relaxed));
        let [c0, c1, t0, t1, rest @ ..] = about.to_le_bytes();
        let (channel, ticket) = (u16::from_le_bytes([c0, c1]), u16::from_le_bytes([t0, t1]));
        OfferedBlock {
            memory,
            offset,
            length,
            channel,
            ticket,
            immediate: u32::from_le_bytes(rest),
        }
    }

    /// Posts an entry with number `count`. Called by the owner, who has checked that its slot is
    /// free.
    pub(super) fn post(self, count: u64, entry: &OfferedBlock) {
        let OfferedBlock { memory, offset, length, channel, ticket, immediate } = *entry;
        let about = u64::from(channel) | u64::from(ticket) << 16 | u64::from(immediate) << 32;
        for (cell, value) in
            self.entry_cells(count).into_iter().zip([memory, offset, length, about])
        {
            cell.store(value, Ordering::Relaxed);
        }
        self.map.cell(self.at + 8).store(count + 1, Ordering::Release);
    }

    /// Returns the answer with number `count`, which must have been given. Returns `None` if it is
    /// not valid.
    pub(super) fn answer(self, count: u64) -> Option<QueueAnswer> {
        let answer = self.answer_cell(count).load(Ordering::Relaxed);
        let ticket =
            u16::try_from(answer & !REFUSED).ok().filter(|ticket| u64::from(*ticket) < SENDS)?;
        Some(QueueAnswer { ticket, is_taken: answer & REFUSED == 0 })
    }

    /// Stores the answer with number `count`. Called by the owner after its last use of the block's
    /// bytes.
    pub(super) fn settle(self, count: u64, answer: QueueAnswer) {
        let refused = if answer.is_taken { 0 } else { REFUSED };
        self.answer_cell(count).store(u64::from(answer.ticket) | refused, Ordering::Relaxed);
        self.map.cell(self.at + CACHE_LINE + 8).store(count + 1, Ordering::Release);
    }

    fn entry_cells(self, count: u64) -> [&'m AtomicU64; 4] {
        let at = self.at + ENTRIES_AT + place(count, ENTRIES) * ENTRY_BYTES;
        [0, 8, 16, 24].map(|offset| self.map.cell(at + offset))
    }

    fn answer_cell(self, count: u64) -> &'m AtomicU64 {
        self.map.cell(self.at + ANSWERS_AT + place(count, SENDS) * 8)
    }
}

/// Returns the slot of number `count` in a ring.
fn place(count: u64, ring: u64) -> usize {
    // The value is below the ring's size, which is small.
    usize::try_from(count % ring).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::super::map::Access;
    use super::*;

    #[test]
    fn block_queue_entries_and_answers_round_trip() {
        let file = tempfile::tempfile().expect("a file");
        let whole = 4096 + bytes(3);
        file.set_len(whole as u64).expect("its length");
        let map = Map::new(file.as_fd(), whole, Access::Write).expect("mapped");
        let queues = BlockQueues::new(&map, 4096);
        for peer in [Rank(0), Rank(2)] {
            let lane = queues.lane(peer);
            for count in 0..3 * SENDS {
                let entry = OfferedBlock {
                    memory: count,
                    offset: u64::MAX - count,
                    length: count + 7,
                    channel: u16::MAX,
                    ticket: 511,
                    immediate: u32::MAX - 1,
                };
                lane.post(count, &entry);
                assert_eq!((lane.posted(), lane.entry(count)), (count + 1, entry));
                let answer = QueueAnswer { ticket: 511, is_taken: count % 2 == 0 };
                lane.settle(count, answer);
                assert_eq!((lane.settled(), lane.answer(count)), (count + 1, Some(answer)));
            }
            assert!(!lane.is_ended());
            lane.end();
            assert!(lane.is_ended());
        }
        assert_eq!(queues.lane(Rank(1)).posted(), 0);
        queues.close(Channel(63));
        queues.close(Channel(CHANNELS));
        assert!(
            queues.is_closed(Channel(63))
                && !queues.is_closed(Channel(64))
                && !queues.is_closed(Channel(CHANNELS))
        );
    }
}
