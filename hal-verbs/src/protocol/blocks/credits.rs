//! The limit on messages in flight. Without it, a message could find no receive, which would break
//! the connection.
//!
//! Each end posts [`MESSAGES_MAX`] receives, and reposts each as soon as its message has been
//! processed. Every message contains the number of messages that its sender has processed. An end
//! that has processed many messages and has nothing to send sends a `Credit`. So does an end that
//! has been asked, if it has processed any messages since its last report.
//!
//! The last receive is reserved for a `Credit`, so the two ends never wait for each other. If an
//! end can send nothing, the last message that it sent was a `Credit`, and it sent that after the
//! last message that it received from the other end. This cannot be true of both ends.

/// Number of receives that each end posts for messages.
pub(crate) const MESSAGES_MAX: u32 = 32;

/// One end's knowledge of the other's receives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credits {
    sent: u64,
    /// Number of messages that the peer has reported as processed.
    taken_there: u64,
    taken: u64,
    /// Number of messages that have been reported to the peer as processed.
    told: u64,
}

impl Credits {
    /// Returns whether a message may be sent.
    pub(crate) fn has_room(&self) -> bool {
        self.under_way() + 1 < u64::from(MESSAGES_MAX)
    }

    /// Returns whether this many messages may be sent, so that room for `reserve` others remains.
    pub(crate) fn has_room_for(&self, messages: u64, reserve: u64) -> bool {
        self.under_way() + messages + reserve < u64::from(MESSAGES_MAX)
    }

    /// Returns whether a `Credit` is due and may be sent.
    pub(crate) fn owes(&self) -> bool {
        self.taken - self.told >= u64::from(MESSAGES_MAX / 2)
            && self.under_way() < u64::from(MESSAGES_MAX)
    }

    /// Returns whether a `Credit` for which the peer has asked may be sent and contains news.
    pub(crate) fn may_answer(&self) -> bool {
        self.taken > self.told && self.under_way() < u64::from(MESSAGES_MAX)
    }

    /// Returns the number of the next message, counted from 0.
    pub(crate) const fn next_number(&self) -> u64 {
        self.sent
    }

    /// Returns the number of messages that the peer has reported as processed.
    pub(crate) const fn taken_there(&self) -> u64 {
        self.taken_there
    }

    const fn under_way(&self) -> u64 {
        self.sent - self.taken_there
    }

    /// Counts a sent message, and returns the number of processed messages that it reports.
    pub(crate) const fn send(&mut self) -> u64 {
        self.sent += 1;
        self.told = self.taken;
        self.taken
    }

    /// Counts a received message, which reports the number that the peer has processed. Returns
    /// `false` if that number is impossible.
    pub(crate) const fn take(&mut self, taken_there: u64) -> bool {
        let is_possible = taken_there >= self.taken_there && taken_there <= self.sent;
        if is_possible {
            self.taken_there = taken_there;
            self.taken += 1;
        }
        is_possible
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Two ends, each with its messages in flight to the other, represented by the count that each
    /// message reports.
    #[derive(Default)]
    struct Ends {
        credits: [Credits; 2],
        wires: [VecDeque<u64>; 2],
    }

    impl Ends {
        fn send(&mut self, from: usize, wanted: bool) {
            let credits = &mut self.credits[from];
            if (wanted && credits.has_room()) || credits.owes() {
                self.wires[from].push_back(credits.send());
            }
            assert!(self.wires[from].len() <= MESSAGES_MAX as usize, "a message without a receive");
        }

        /// Answers like an end whose peer has asked.
        fn answer(&mut self, from: usize) {
            if self.credits[from].may_answer() {
                self.wires[from].push_back(self.credits[from].send());
            }
            assert!(self.wires[from].len() <= MESSAGES_MAX as usize, "a message without a receive");
        }

        fn take(&mut self, at: usize) -> bool {
            let Some(taken) = self.wires[1 - at].pop_front() else { return false };
            assert!(self.credits[at].take(taken));
            true
        }
    }

    proptest! {
        #[test]
        fn credits_prevent_receive_overrun_and_deadlock(
            steps in prop::collection::vec((0..2_usize, 0..4_u8), 0..2000),
        ) {
            let mut ends = Ends::default();
            for (end, what) in steps {
                match what {
                    0 => { ends.take(end); }
                    1 => ends.send(end, true),
                    2 => ends.answer(end),
                    _ => ends.send(end, false),
                }
            }
            // Everything has been processed, and all credits that are due are sent.
            for _ in 0..4 {
                for end in [0, 1] {
                    while ends.take(end) {}
                    ends.send(end, false);
                }
            }
            prop_assert!(ends.credits.iter().all(Credits::has_room));
        }
    }

    #[test]
    fn acknowledged_count_above_sent_messages_is_rejected() {
        let mut credits = Credits::default();
        assert!(!credits.take(1));
        credits.send();
        assert!(credits.take(1) && !credits.take(0) && !credits.take(2));
    }
}
