//! The deliveries that an incarnation made durable in a group, and the number of them that a later
//! incarnation has replayed.
//!
//! Invariant: as far as their first positions show, no debt of a node in a group follows from
//! another. Once two debts contradict each other, no more are added, because no incarnation can pay
//! both.

use super::roster::StartId;
use super::trail::{Chain, PLACES_MAX, Trail, TrailPlace};

/// The deliveries that an incarnation made durable in a group.
#[derive(Debug)]
pub(super) struct Debt {
    /// The incarnation that made the deliveries durable.
    pub(super) by: StartId,
    /// The line of the record that reported the deliveries durable.
    pub(super) line: u64,
    /// The durable deliveries.
    pub(super) trail: Trail,
    /// Number of deliveries that the current incarnation has replayed.
    pub(super) replayed: u64,
    /// The position and line of the first replay that was a different message.
    pub(super) wrong: Option<(u64, u64)>,
    chain: Chain,
}

/// The extent to which the current incarnation has paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paid {
    /// Everything.
    All,
    /// A different message was replayed.
    Wrong,
    /// Too few messages were replayed.
    Short,
    /// The judge has forgotten too much to decide.
    Unknown,
}

impl Debt {
    /// Creates the debt from the durable part of an incarnation's deliveries.
    pub(super) fn new(by: StartId, line: u64, mut trail: Trail) -> Self {
        trail.keep_durable();
        Self { by, line, trail, replayed: 0, wrong: None, chain: Chain::default() }
    }

    /// Resets the debt for the next incarnation, which has replayed nothing yet.
    pub(super) fn renew(&mut self) {
        (self.replayed, self.wrong, self.chain) = (0, None, Chain::default());
    }

    /// Notes a replay by the current incarnation.
    pub(super) fn replay(&mut self, message: u64, line: u64) {
        let place = self.replayed;
        if place >= self.trail.durable {
            return;
        }
        self.replayed += 1;
        match self.place(place) {
            Some(due) if due.message != message => {
                self.wrong.get_or_insert((place, line));
            }
            Some(_) => {}
            None => self.chain.add(message),
        }
    }

    /// Returns one of the first positions.
    pub(super) fn place(&self, place: u64) -> Option<TrailPlace> {
        self.trail.first.get(usize::try_from(place).ok()?).copied()
    }

    /// Returns whether the current incarnation has paid.
    pub(super) fn paid(&self) -> Paid {
        if self.wrong.is_some() {
            Paid::Wrong
        } else if self.replayed < self.trail.durable {
            Paid::Short
        } else if self.is_whole() {
            Paid::All
        } else if self.trail.lost {
            Paid::Unknown
        } else if self.chain != self.trail.chain {
            Paid::Wrong
        } else {
            Paid::All
        }
    }

    /// Returns whether every position is stored.
    fn is_whole(&self) -> bool {
        self.trail.durable <= PLACES_MAX as u64
    }

    /// Returns whether an incarnation that pays this debt also pays the other, as far as is known.
    fn includes(&self, other: &Self) -> bool {
        let (own, others) = (&self.trail.first, &other.trail.first);
        other.is_whole() && others.len() <= own.len() && same(own, others)
    }

    /// Returns whether no incarnation can pay both debts.
    fn contradicts(&self, other: &Self) -> bool {
        !same(&self.trail.first, &other.trail.first)
    }
}

/// Returns whether two lists agree over their common length.
fn same(one: &[TrailPlace], other: &[TrailPlace]) -> bool {
    one.iter().zip(other).all(|(one, other)| one.message == other.message)
}

/// The debts of a node in a group.
#[derive(Debug, Default)]
pub(super) struct Debts {
    /// The debts.
    pub(super) debts: Vec<Debt>,
    hopeless: bool,
}

impl Debts {
    /// Adds one.
    pub(super) fn add(&mut self, debt: Debt) {
        if self.hopeless || self.debts.iter().any(|other| other.includes(&debt)) {
            return;
        }
        self.debts.retain(|other| !debt.includes(other));
        self.hopeless = self.debts.iter().any(|other| other.contradicts(&debt));
        self.debts.push(debt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debt(messages: &[u64]) -> Debt {
        let mut trail = Trail::default();
        messages.iter().for_each(|message| trail.deliver(*message, 1));
        trail.secure(messages.len() as u64);
        Debt::new(StartId(0), 9, trail)
    }

    #[test]
    fn identical_replay_settles_the_debt() {
        let mut debt = debt(&[1, 2, 3]);
        for (message, paid) in [(1, Paid::Short), (2, Paid::Short), (3, Paid::All), (9, Paid::All)]
        {
            debt.replay(message, 5);
            assert_eq!(debt.paid(), paid);
        }
        debt.renew();
        assert_eq!(debt.paid(), Paid::Short);
        debt.replay(2, 7);
        assert_eq!((debt.paid(), debt.wrong), (Paid::Wrong, Some((0, 7))));
    }

    #[test]
    fn long_replay_is_compared_by_hash() {
        let messages: Vec<u64> = (0..2 * PLACES_MAX as u64).collect();
        let mut debt = debt(&messages);
        messages.iter().for_each(|message| debt.replay(*message, 5));
        assert_eq!(debt.paid(), Paid::All);
        debt.renew();
        let last = messages.len() - 1;
        messages[..last - 1].iter().for_each(|message| debt.replay(*message, 5));
        [last, last - 1].iter().for_each(|message| debt.replay(*message as u64, 5));
        assert_eq!(debt.paid(), Paid::Wrong);
    }

    #[test]
    fn debt_implied_by_another_is_not_stored() {
        let mut debts = Debts::default();
        for messages in [vec![1, 2], vec![1], vec![1, 2, 3], vec![1, 2, 3]] {
            debts.add(debt(&messages));
            assert_eq!(debts.debts.len(), 1);
        }
        for other in 5..99 {
            debts.add(debt(&[other]));
        }
        assert_eq!(debts.debts.len(), 2, "two that contradict are enough");
    }
}
