//! What a node's start made durable in a group, and how far a later start has replayed it.
//!
//! Invariant: of the debts of a node in a group none follows from another, as far as their first
//! places tell; and once two of them contradict each other no more are added, since no start can
//! pay both.

use super::roster::StartId;
use super::trail::{Chain, PLACES_MAX, Trail, TrailPlace};

/// What a start made durable in a group.
#[derive(Debug)]
pub(super) struct Debt {
    /// The start that made it durable.
    pub(super) by: StartId,
    /// The record that said so.
    pub(super) line: u64,
    /// What it is.
    pub(super) trail: Trail,
    /// How far the present start replayed it.
    pub(super) replayed: u64,
    /// Its first replay that was another message: the place and the line.
    pub(super) wrong: Option<(u64, u64)>,
    chain: Chain,
}

/// How far a present start has paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paid {
    /// Everything.
    All,
    /// Something else was replayed.
    Wrong,
    /// Too little was replayed.
    Short,
    /// The judge does not hold enough to decide.
    Unknown,
}

impl Debt {
    /// Of the durable part of a start's deliveries.
    pub(super) fn new(by: StartId, line: u64, mut trail: Trail) -> Self {
        trail.keep_durable();
        Self { by, line, trail, replayed: 0, wrong: None, chain: Chain::default() }
    }

    /// Another start begins to pay, from nothing.
    pub(super) fn renew(&mut self) {
        (self.replayed, self.wrong, self.chain) = (0, None, Chain::default());
    }

    /// The present start replayed something.
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

    /// One of the first places.
    pub(super) fn place(&self, place: u64) -> Option<TrailPlace> {
        self.trail.first.get(usize::try_from(place).ok()?).copied()
    }

    /// How far the present start has paid.
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

    /// Whether all of it is held place by place.
    fn is_whole(&self) -> bool {
        self.trail.durable <= PLACES_MAX as u64
    }

    /// Whether a start that pays this debt pays the other too, as far as is known.
    fn includes(&self, other: &Self) -> bool {
        let (own, others) = (&self.trail.first, &other.trail.first);
        other.is_whole() && others.len() <= own.len() && same(own, others)
    }

    /// Whether no start can pay both.
    fn contradicts(&self, other: &Self) -> bool {
        !same(&self.trail.first, &other.trail.first)
    }
}

/// Whether two lists have the same messages as far as both go.
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
    fn a_debt_is_paid_by_the_same_in_the_same_order() {
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
    fn a_debt_behind_the_first_places_is_paid_by_its_chain() {
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
    fn what_follows_from_another_is_not_held_twice() {
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
