//! How many messages may be under way: a message that finds no receive would cost the connection.
//!
//! Each end posts [`MESSAGES_MAX`] receives, and posts each again as soon as its message is taken.
//! Every message says how many its sender has taken. An end that has taken many and has nothing to
//! say sends a `Credit`; so does an end that the other asks, if it has taken any since it last said
//! how many.
//!
//! The last receive is a `Credit`'s alone, so the two ends never wait for each other: the last
//! message of an end that can send nothing was a `Credit`, sent after the last of the other, and
//! that cannot be so of both.

/// Receives that each end posts for messages.
pub(crate) const MESSAGES_MAX: u32 = 32;

/// What each end knows of the other's receives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credits {
    sent: u64,
    /// Of those, the peer said that it took so many.
    taken_there: u64,
    taken: u64,
    /// The peer was told of so many.
    told: u64,
}

impl Credits {
    /// Whether a message may go.
    pub(crate) fn has_room(&self) -> bool {
        self.under_way() + 1 < u64::from(MESSAGES_MAX)
    }

    /// Whether a `Credit` must go, and may.
    pub(crate) fn owes(&self) -> bool {
        self.taken - self.told >= u64::from(MESSAGES_MAX / 2)
            && self.under_way() < u64::from(MESSAGES_MAX)
    }

    /// Whether a `Credit` may go that the peer asked for, and has anything to say.
    pub(crate) fn may_answer(&self) -> bool {
        self.taken > self.told && self.under_way() < u64::from(MESSAGES_MAX)
    }

    /// The number of the next message; they count from 0.
    pub(crate) const fn next_number(&self) -> u64 {
        self.sent
    }

    /// How many messages the peer took, as far as it said.
    pub(crate) const fn taken_there(&self) -> u64 {
        self.taken_there
    }

    const fn under_way(&self) -> u64 {
        self.sent - self.taken_there
    }

    /// A message goes. What it says: how many were taken.
    pub(crate) const fn send(&mut self) -> u64 {
        self.sent += 1;
        self.told = self.taken;
        self.taken
    }

    /// A message came, and says how many the peer has taken. False if that cannot be.
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

    /// Two ends, each with what is under way to the other: what each message says.
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

        /// As an end does whose peer asked.
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
        fn receives_suffice_and_nobody_waits_for_ever(
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
            // Everything is taken, and credits go where they are owed.
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
    fn what_was_never_sent_was_not_taken() {
        let mut credits = Credits::default();
        assert!(!credits.take(1));
        credits.send();
        assert!(credits.take(1) && !credits.take(0) && !credits.take(2));
    }
}
