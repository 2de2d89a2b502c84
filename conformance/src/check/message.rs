//! A message that the judge holds in full: what is known of its multicast, and of each delivery.
//!
//! Invariants: a start's first delivery comes before its repeats; `counted` is the number of
//! deliveries that take part in the order between messages; `entries` is the number of places that
//! the message has in queues.

use super::groups::{GroupId, GroupSetId};
use super::mixing::Table;
use super::name::Name;
use super::roster::{NodeId, StartId};

/// The view of a message in one of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MessageView {
    /// The view's id.
    pub(super) view: u64,
    /// It is the view of a delivery in the group; else one in which members of it were when they
    /// delivered the message by another group.
    pub(super) is_direct: bool,
}

impl MessageView {
    /// Which of two holds: direct ones before others, and then the lowest.
    pub(super) fn rank(&self) -> (bool, u64) {
        (!self.is_direct, self.view)
    }
}

/// What the sender answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    /// Nothing, or the history does not say that it took the message.
    #[default]
    None,
    /// It took the message.
    Taken,
    /// It is not known whether it took the message.
    Unsure,
    /// It surely did not.
    Refused,
}

impl Answer {
    /// Whether the sender answered with an error.
    pub(super) fn is_refusal(self) -> bool {
        matches!(self, Self::Unsure | Self::Refused)
    }
}

/// A `multicast`, with what became of it at its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Its line.
    pub(super) line: u64,
    /// When.
    pub(super) t_ns: u64,
    /// The start that sent it.
    pub(super) start: StartId,
    /// Its groups.
    pub(super) groups: GroupSetId,
    /// The payload's size.
    pub(super) bytes: Option<u64>,
    /// A hash of the payload's digest.
    pub(super) digest: Option<u64>,
    /// What its sender answered.
    pub(super) answer: Answer,
    /// The line of the answer.
    pub(super) answer_line: u64,
}

impl Sent {
    /// Whether it was surely not sent, so that most checks pass it over.
    pub(super) fn is_void(&self) -> bool {
        self.answer == Answer::Refused
    }
}

/// Properties of a delivery, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    /// It repeats what an earlier start delivered, as its node says.
    pub(super) const REPLAYED: Self = Self(1);
    /// The same start delivered the message before.
    pub(super) const REPEAT: Self = Self(1 << 1);
    /// The message is not addressed to the node.
    pub(super) const UNADDRESSED: Self = Self(1 << 2);
    /// The group is not one of the message's, or the node is no member of it.
    pub(super) const NO_GROUP: Self = Self(1 << 3);
    /// It was before the multicast, by time or by its own start's lines.
    pub(super) const EARLY: Self = Self(1 << 4);
    /// It names another sender.
    pub(super) const SENDER_WRONG: Self = Self(1 << 5);
    /// It and the multicast both name the payload's size or digest.
    pub(super) const BYTES_KNOWN: Self = Self(1 << 6);
    /// They differ.
    pub(super) const BYTES_WRONG: Self = Self(1 << 7);
    /// It names another view than the one that its start had installed.
    pub(super) const VIEW_WRONG: Self = Self(1 << 8);
    /// Its start had installed no view of the group.
    pub(super) const VIEWLESS: Self = Self(1 << 9);
    /// Its start had ended.
    pub(super) const AFTER_END: Self = Self(1 << 10);
    /// It was judged before the message was forgotten; its line is not known any more.
    pub(super) const PAST: Self = Self(1 << 11);
    /// It is past, and where it was among its start's deliveries is not known any more.
    pub(super) const UNPLACED: Self = Self(1 << 12);

    /// Whether any of these is set.
    pub(super) fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// Sets these.
    pub(super) fn set(&mut self, of: Self) {
        self.0 |= of.0;
    }

    /// Sets these under a condition.
    pub(super) fn set_if(&mut self, condition: bool, of: Self) {
        if condition {
            self.set(of);
        }
    }
}

impl std::ops::BitOr for Marks {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Stands for no view.
pub(super) const NO_VIEW: u32 = u32::MAX;

/// A delivery. There are many, so it is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Its line; 0 if it is past.
    pub(super) line: u64,
    /// The start that delivered.
    pub(super) start: StartId,
    /// The group by which it came.
    pub(super) group: GroupId,
    /// The place of its view's id among all ids, or [`NO_VIEW`].
    pub(super) view: u32,
    /// What else is known of it.
    pub(super) marks: Marks,
}

impl Delivery {
    /// Whether all checks pass it over but the one that is about it.
    pub(super) fn is_passed_over(&self) -> bool {
        self.marks.any(Marks::REPEAT | Marks::UNADDRESSED)
    }

    /// Whether it is a delivery in its group and view: no replay, and not by a group that is not
    /// the message's.
    pub(super) fn is_in_view(&self) -> bool {
        !self.marks.any(Marks::REPLAYED | Marks::NO_GROUP | Marks::REPEAT | Marks::UNADDRESSED)
    }
}

/// What a delivery says of the message, to be compared with the multicast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// When it was.
    pub(super) t_ns: u64,
    /// The payload's size.
    pub(super) bytes: Option<u64>,
    /// A hash of the payload's digest.
    pub(super) digest: Option<u64>,
    /// The sender.
    pub(super) sender: Option<NodeId>,
}

/// From so many deliveries on, a table finds a start's.
const CROWD: usize = 96;

/// A message that is held.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// Its name.
    pub(super) name: Name,
    /// Whether the slot holds a message now.
    pub(super) is_held: bool,
    /// Distinguishes it from the messages that had its slot before.
    pub(super) generation: u32,
    /// Its multicast, once that is known.
    pub(super) sent: Option<Sent>,
    /// Its deliveries.
    pub(super) deliveries: Vec<Delivery>,
    /// Where each start's first delivery is, once they are many.
    firsts: Option<Box<Table<StartId, usize>>>,
    /// One for each delivery, until the multicast is known.
    pub(super) claims: Vec<Claim>,
    /// In how many queues it is.
    pub(super) entries: u32,
    /// How many deliveries take part in the order between messages.
    pub(super) counted: u32,
    /// How many of their queues it heads.
    pub(super) heading: u32,
    /// Its place in the order, if it was popped before.
    pub(super) place: Option<u64>,
    /// Its views in its groups as its past deliveries have them.
    pub(super) past_views: Vec<(GroupId, MessageView)>,
}

impl Message {
    /// A message of which nothing is known.
    pub(super) fn new(name: Name, generation: u32) -> Self {
        Self { name, is_held: true, generation, ..Self::default() }
    }

    /// Makes room for another; the lists keep their memory.
    pub(super) fn reset(&mut self) {
        let (mut deliveries, mut past_views) =
            (std::mem::take(&mut self.deliveries), std::mem::take(&mut self.past_views));
        deliveries.clear();
        past_views.clear();
        let next = Self::new(self.name, self.generation.wrapping_add(1));
        *self = Self { is_held: false, deliveries, past_views, ..next };
    }

    /// It was delivered.
    pub(super) fn add(&mut self, delivery: Delivery) {
        if let Some(firsts) = &mut self.firsts {
            firsts.entry(delivery.start).or_insert(self.deliveries.len());
        }
        self.deliveries.push(delivery);
        if self.deliveries.len() == CROWD && self.firsts.is_none() {
            let mut firsts: Table<StartId, usize> = Table::default();
            for (place, delivery) in self.deliveries.iter().enumerate() {
                firsts.entry(delivery.start).or_insert(place);
            }
            self.firsts = Some(Box::new(firsts));
        }
    }

    /// A start's first delivery of it.
    pub(super) fn first_by(&self, start: StartId) -> Option<&Delivery> {
        match &self.firsts {
            Some(firsts) => firsts.get(&start).and_then(|place| self.deliveries.get(*place)),
            None => self.deliveries.iter().find(|delivery| delivery.start == start),
        }
    }

    /// Whether the start's delivery counts for any check but those of integrity.
    pub(super) fn is_delivered_by(&self, start: StartId) -> bool {
        self.sent.is_some_and(|sent| !sent.is_void())
            && self.first_by(start).is_some_and(|delivery| !delivery.is_passed_over())
    }

    /// The deliveries that count for the checks of deliveries.
    pub(super) fn delivered(&self) -> impl Iterator<Item = &Delivery> {
        let void = self.sent.is_none_or(|sent| sent.is_void());
        self.deliveries.iter().filter(move |delivery| !void && !delivery.is_passed_over())
    }

    /// Marks what the multicast says about a delivery.
    pub(super) fn compared(
        sent: &Sent,
        sender: NodeId,
        (delivery, claim): (&Delivery, &Claim),
    ) -> Marks {
        let mut marks = delivery.marks;
        let early =
            claim.t_ns < sent.t_ns || (delivery.start == sent.start && delivery.line < sent.line);
        marks.set_if(early, Marks::EARLY);
        marks.set_if(claim.sender.is_some_and(|claimed| claimed != sender), Marks::SENDER_WRONG);
        for (ours, theirs) in [(sent.bytes, claim.bytes), (sent.digest, claim.digest)] {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                marks.set(Marks::BYTES_KNOWN);
                marks.set_if(ours != theirs, Marks::BYTES_WRONG);
            }
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starts_first_delivery_is_found_among_few_and_many() {
        let mut message = Message::new(Name { prefix: 1, number: 0 }, 0);
        for line in 1..=3 * CROWD as u64 {
            // Each start delivers twice in a row.
            let start = StartId((line / 2) as u32);
            message.add(Delivery {
                line,
                start,
                group: GroupId(0),
                view: NO_VIEW,
                marks: Marks::default(),
            });
            let first = message.first_by(start).map(|first| first.line);
            assert_eq!(first, Some((line / 2 * 2).max(1)));
            assert!(message.first_by(StartId(start.0 + 1)).is_none());
        }
        message.reset();
        assert!(message.first_by(StartId(1)).is_none());
    }
}
