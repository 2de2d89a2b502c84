//! How a leader keeps a peer's log equal to its own.
//!
//! After the grant, a leader reads the peer's control line and headers. It finds where that log
//! begins to differ from its own, cuts it there, and writes everything after that point. Only then
//! does it put its stamp on the log. From then on the log counts in quorums, and new entries follow
//! (TRM-3).
//!
//! A list may be read from the local log until the list has completed. Therefore, while lists of
//! this replica's earlier term are in flight, no other leader writes the local log, and this
//! replica copies no entries from other logs into it. Otherwise a follower would receive the header
//! of one entry with the payload of another.
//!
//! Source: TRAM, sections 5.3 and 5.5.
//!
//! Requirement: TRM-4.

use super::token::SEQUENCES;
use crate::ids::{Time, index_from_u32};

/// Maximum number of lists in flight to one peer's log.
const UNDER_WAY_MAX: usize = 16;

/// The progress of a leader or a candidate with a peer's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FollowStage {
    /// The log has not been granted yet, or has been granted to another leader.
    #[default]
    Idle,
    Reading,
    Read,
    /// The peer's log ends before the first entry that the leader still has, so the peer needs a
    /// snapshot.
    Behind,
    /// The part of the log that differs is being replaced.
    Repairing,
    /// The log has the leader's stamp and counts in quorums.
    Synced,
}

/// A leader's state for one peer's log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Follow {
    pub(super) stage: FollowStage,
    /// Whether a read of the log's headers is in flight.
    pub(super) is_copying: bool,
    pub(super) copied_bytes: usize,
    pub(super) copying_bytes: usize,
    /// Number of such reads that have been posted, so that a late one is not confused with the
    /// last.
    pub(super) copies: u32,
    /// Number of the repair of the peer's log.
    pub(super) repair: u64,
    /// Log index at which the peer's log begins to differ from the leader's.
    pub(super) cut: u64,
    pub(super) needs_cut: bool,
    /// Log index of the first entry that was written to the peer.
    pub(super) first: u64,
    /// Entries below the peer's delivered count that the peer lacks; they are written separately.
    pub(super) lacking: u64,
    pub(super) lacking_end: u64,
    /// Number of posted entries. `acknowledged` counts those that are known to be visible in the
    /// peer's log (see `acknowledge`), and `completed` those whose lists have completed.
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    pub(super) completed: u64,
    /// Decided count that has been posted. `decided_floor` is the count that was in the peer's log
    /// before.
    pub(super) decided_sent: u64,
    pub(super) decided_floor: u64,
    pub(super) stamp_sent: bool,
    /// Whether the list that carries the stamp has completed.
    pub(super) stamp_completed: bool,
    /// Number of posted lists. `done` counts the completed lists, and `tails` has the end of each
    /// list in flight.
    pub(super) posted: u32,
    pub(super) done: u32,
    pub(super) tails: [u64; UNDER_WAY_MAX],
    /// Number of lists of this campaign or earlier ones that may still be read from the local log.
    pub(super) flying: u32,
    /// Number of those lists that were posted before the log was requested or read again.
    /// `earlier_from` is the first entry that they may read.
    pub(super) earlier: u32,
    pub(super) earlier_from: u64,
    /// List that carries the stamp.
    pub(super) stamped_by: u32,
    /// Log index below which the peer is known to have the bodies of all references.
    pub(super) covered: u64,
    /// Log index of a body that the peer lacks, and the time since when it has been lacking.
    pub(super) lacks: Option<(u64, Time)>,
    /// Range of log indices whose payloads are carried to the peer although their entries are
    /// references.
    pub(super) carry: u64,
    pub(super) carry_end: u64,
    /// List in flight that carries payloads, and the log index of the first of them.
    pub(super) carrying: Option<(u32, u64)>,
    /// Whether the peer publishes that it counts in quorums.
    pub(super) is_voter: bool,
    /// Incarnation whose admission has been proposed.
    pub(super) admitting: Option<u16>,
}

impl Follow {
    pub(super) fn ask(&mut self) {
        *self = self.with_lists_alone();
    }

    /// Starts to read the peer's log again, or for the first time. Lists that were posted before no
    /// longer count.
    pub(super) fn read_again(&mut self) {
        *self = Self {
            stage: FollowStage::Reading,
            posted: self.posted,
            done: self.posted,
            ..self.with_lists_alone()
        };
    }

    /// Forgets everything except the lists in flight, which continue to read the local log.
    fn with_lists_alone(&self) -> Self {
        let from = self.under_way().unwrap_or(u64::MAX);
        Self {
            copies: self.copies,
            flying: self.flying,
            earlier: self.flying,
            earlier_from: from,
            ..Self::default()
        }
    }

    /// Resets the state, because the peer has granted its log to another replica.
    pub(super) fn refused(&mut self) {
        self.stage = FollowStage::Idle;
        (self.flying, self.earlier) = (0, 0);
        self.carrying = None;
    }

    /// Counts a list of any campaign as landed.
    pub(super) fn landed(&mut self) {
        self.flying = self.flying.saturating_sub(1);
        self.earlier = self.earlier.saturating_sub(1);
    }

    /// Returns whether lists are in flight to a peer that has not granted its log again since they
    /// were posted.
    pub(super) fn reads_on(&self) -> bool {
        let has_granted = matches!(self.stage, FollowStage::Reading | FollowStage::Read);
        self.flying > 0 && !has_granted
    }

    /// Returns the sequence number of the next read of headers.
    pub(super) fn next_copy(&self) -> u32 {
        self.copies.wrapping_add(1) & (SEQUENCES - 1)
    }

    pub(super) fn copy_begins(&mut self, bytes: usize) {
        self.copies = self.next_copy();
        self.is_copying = true;
        self.copying_bytes = bytes;
    }

    pub(super) fn copied(&mut self, sequence: u32) {
        if self.is_copying && sequence == self.copies {
            self.is_copying = false;
            self.copied_bytes = self.copied_bytes.saturating_add(self.copying_bytes);
        }
    }

    /// Requests that the control line be read once more, after `whole` bytes of control line and
    /// headers.
    pub(super) fn read_last(&mut self, whole: usize) {
        self.stage = FollowStage::Reading;
        self.copied_bytes = whole;
    }

    /// Records a list and all earlier ones as completed: they no longer read the local log. Whether
    /// they count as landed depends on the fabric (see `acknowledge`).
    pub(super) fn appended(&mut self, sequence: u32) {
        let ahead = self.posted.wrapping_sub(sequence) & (SEQUENCES - 1);
        let under_way = self.posted.wrapping_sub(self.done) & (SEQUENCES - 1);
        if ahead == 0 || ahead > under_way {
            return;
        }
        self.done = sequence.wrapping_add(1) & (SEQUENCES - 1);
        let tail = self.tails.get(index_from_u32(sequence) % UNDER_WAY_MAX).copied().unwrap_or(0);
        self.completed = self.completed.max(tail);
        let is_before = |(carrying, _): &(u32, u64)| {
            sequence.wrapping_sub(*carrying) & (SEQUENCES - 1) < SEQUENCES >> 1
        };
        self.carrying = self.carrying.filter(|carrying| !is_before(carrying));
        let is_stamped = self.stamped_by.wrapping_sub(sequence) & (SEQUENCES - 1) == 0;
        self.stamp_completed |= self.stamp_sent && is_stamped;
    }

    /// Records what is known to be visible in the peer's log: its tail and, if `is_stamped`, the
    /// leader's stamp.
    pub(super) fn acknowledge(&mut self, is_stamped: bool, tail: u64) {
        if self.stage == FollowStage::Repairing && self.stamp_sent && is_stamped {
            self.stage = FollowStage::Synced;
        }
        if self.stage == FollowStage::Synced {
            self.acknowledged = self.acknowledged.max(tail.min(self.sent));
        }
    }

    /// Returns the first entry that a list in flight may still read from the local log.
    pub(super) fn under_way(&self) -> Option<u64> {
        let first = if self.stamp_completed { self.completed } else { self.first };
        let own = (self.posted != self.done).then_some(first);
        let earlier = (self.earlier > 0).then_some(self.earlier_from);
        let carrying = self.carrying.map(|(_, from)| from);
        own.into_iter().chain(earlier).chain(carrying).min()
    }

    /// Returns whether payloads must be carried and the previous ones have arrived.
    pub(super) fn carries(&self) -> bool {
        self.carry < self.carry_end && self.carrying.is_none()
    }

    pub(super) fn is_full(&self) -> bool {
        let under_way = self.posted.wrapping_sub(self.done) & (SEQUENCES - 1);
        index_from_u32(under_way) >= UNDER_WAY_MAX
    }

    pub(super) fn took(&mut self, tail: u64) -> u32 {
        let sequence = self.posted;
        if let Some(slot) = self.tails.get_mut(index_from_u32(sequence) % UNDER_WAY_MAX) {
            *slot = tail;
        }
        self.posted = sequence.wrapping_add(1) & (SEQUENCES - 1);
        sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_complete_in_order_despite_late_completions() {
        let mut follow = Follow { stage: FollowStage::Repairing, ..Follow::default() };
        let first = follow.took(3);
        let second = follow.took(5);
        follow.stamp_sent = true;
        follow.stamped_by = second;
        follow.appended(second.wrapping_add(1));
        assert_eq!(follow.completed, 0, "which was not posted");
        follow.appended(first);
        assert_eq!((follow.completed, follow.stamp_completed), (3, false));
        follow.appended(second);
        assert_eq!((follow.completed, follow.stamp_completed), (5, true));
        follow.appended(first);
        assert_eq!((follow.completed, follow.under_way()), (5, None));
    }

    #[test]
    fn stamp_has_completed_once_its_list_has() {
        let mut follow = Follow { stage: FollowStage::Repairing, ..Follow::default() };
        let lists = [1, 2, 3, 4].map(|tail| follow.took(tail));
        (follow.stamp_sent, follow.stamped_by) = (true, lists[3]);
        for list in &lists[..3] {
            follow.appended(*list);
            assert!(!follow.stamp_completed, "{list}");
        }
        follow.appended(lists[3]);
        assert!(follow.stamp_completed);
    }

    /// A peer's log may have the leader's stamp from an earlier repair in the same term, and a peer
    /// may report more than was sent to it.
    #[test]
    fn log_counts_once_sent_stamp_is_acknowledged() {
        let mut follow =
            Follow { stage: FollowStage::Repairing, sent: 7, acknowledged: 2, ..Follow::default() };
        follow.acknowledge(true, 7);
        assert_eq!((follow.acknowledged, follow.stage), (2, FollowStage::Repairing));
        follow.stamp_sent = true;
        follow.acknowledge(false, 7);
        assert_eq!((follow.acknowledged, follow.stage), (2, FollowStage::Repairing));
        follow.acknowledge(true, 5);
        assert_eq!((follow.acknowledged, follow.stage), (5, FollowStage::Synced));
        follow.acknowledge(true, 4);
        assert_eq!(follow.acknowledged, 5);
        follow.acknowledge(true, u64::MAX);
        assert_eq!(follow.acknowledged, 7);
        for stage in [FollowStage::Idle, FollowStage::Reading, FollowStage::Behind] {
            let mut other = Follow { stage, ..follow };
            other.sent = 9;
            other.acknowledge(true, 9);
            assert_eq!((other.acknowledged, other.stage), (7, stage));
        }
    }

    /// The very first list has number zero, which is also the value of `stamped_by` without a
    /// stamp.
    #[test]
    fn unstamped_or_refused_log_is_not_counted() {
        let mut follow = Follow { stage: FollowStage::Repairing, ..Follow::default() };
        let first = follow.took(3);
        follow.appended(first);
        assert!(!follow.stamp_completed);
        (follow.stamped_by, follow.stamp_sent, follow.sent) = (follow.took(3), true, 3);
        follow.refused();
        follow.appended(follow.stamped_by);
        follow.acknowledge(follow.stamp_completed, follow.completed);
        assert_eq!((follow.acknowledged, follow.stage), (0, FollowStage::Idle));
    }

    /// Sequence numbers wrap around, even in the middle of this test.
    #[test]
    fn payloads_count_when_their_list_completes() {
        for from in [0, SEQUENCES - 2, SEQUENCES - 1] {
            let mut follow = Follow { posted: from, done: from, ..Follow::default() };
            let [before, carrying, behind] = [3, 4, 5].map(|tail| follow.took(tail));
            follow.carrying = Some((carrying, 2));
            follow.appended(before);
            assert_eq!(follow.carrying, Some((carrying, 2)), "from {from}");
            follow.appended(behind);
            assert_eq!(follow.carrying, None, "from {from}");
        }
    }

    #[test]
    fn late_header_read_is_ignored() {
        let mut follow = Follow { stage: FollowStage::Reading, ..Follow::default() };
        let first = follow.next_copy();
        follow.copy_begins(64);
        follow.read_again();
        let second = follow.next_copy();
        follow.copy_begins(128);
        follow.copied(first);
        assert_eq!((follow.is_copying, follow.copied_bytes), (true, 0), "of the first time");
        follow.copied(second);
        assert_eq!((follow.is_copying, follow.copied_bytes), (false, 128));
        follow.copied(second);
        assert_eq!(follow.copied_bytes, 128, "none is under way");
        for _ in 0..3 {
            follow.copy_begins(64);
            assert!(follow.copies != first && follow.copies != second, "each has its own number");
        }
    }

    #[test]
    fn entries_of_lists_in_flight_stay_reserved() {
        let mut follow = Follow { first: 3, ..Follow::default() };
        follow.took(9);
        assert_eq!(follow.under_way(), Some(3), "the list with the stamp may read them");
        // The device may still read again entries that the peer reports to have seen.
        (follow.stage, follow.acknowledged) = (FollowStage::Synced, 9);
        (follow.stamp_completed, follow.completed) = (true, 5);
        follow.flying = 1;
        assert_eq!(follow.under_way(), Some(5));
        follow.read_again();
        assert_eq!(follow.under_way(), Some(5), "which was posted before");
        follow.read_again();
        assert_eq!((follow.flying, follow.under_way()), (1, Some(5)), "however often it is read");
        follow.first = 8;
        follow.took(10);
        follow.flying = 2;
        assert_eq!(follow.under_way(), Some(5));
        follow.landed();
        assert_eq!(follow.under_way(), Some(8), "the first of two is there");
        follow.refused();
        follow.read_again();
        assert_eq!(follow.under_way(), None, "none of them lands any more");
    }

    #[test]
    fn list_reads_the_log_until_it_lands() {
        let mut follow = Follow { stage: FollowStage::Synced, ..Follow::default() };
        assert!(!follow.reads_on());
        follow.flying = 1;
        assert!(follow.reads_on());
        for stage in [FollowStage::Reading, FollowStage::Read] {
            follow.stage = stage;
            assert!(!follow.reads_on());
        }
        follow.stage = FollowStage::Idle;
        assert!(follow.reads_on());
        follow.landed();
        assert!(!follow.reads_on());
    }

    #[test]
    fn lists_in_flight_are_bounded() {
        let mut follow = Follow::default();
        for list in 0..40_u64 {
            assert!(!follow.is_full());
            let sequence = follow.took(list);
            if list >= 15 {
                follow.appended(sequence.wrapping_sub(15) & (SEQUENCES - 1));
                assert_eq!(follow.completed, list - 15);
            }
        }
        let sequence = follow.took(40);
        assert!(follow.is_full());
        // The last list has the same index among the lists in flight.
        follow.appended(sequence.wrapping_sub(16) & (SEQUENCES - 1));
        assert_eq!(follow.completed, 24, "it was done before");
        follow.appended(sequence);
        assert!(!follow.is_full(), "all before are done with it");
    }

    /// If two lists in flight carried payloads, the index from which the first one reads would be
    /// forgotten.
    #[test]
    fn only_one_list_in_flight_carries_payloads() {
        let mut follow = Follow { carry: 2, carry_end: 5, ..Follow::default() };
        assert!(follow.carries());
        let list = follow.took(5);
        (follow.carrying, follow.carry) = (Some((list, 2)), 4);
        assert!(!follow.carries());
        follow.appended(list);
        assert!(follow.carries());
        follow.carry = 5;
        assert!(!follow.carries(), "all are there");
    }
}
