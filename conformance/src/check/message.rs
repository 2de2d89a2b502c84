//! A message that the judge holds in full: its multicast and each of its deliveries.
//!
//! Invariants: an incarnation's first delivery comes before its repeats; `counted` is the number of
//! deliveries that take part in the order between messages; `entries` is the number of queue
//! entries of the message.

use super::groups::{GroupId, GroupSetId};
use super::mixing::MixedTable;
use super::name::Name;
use super::roster::{NodeId, StartId};

/// The view of a message in one of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MessageView {
    /// The view's id.
    pub(super) view: u64,
    /// Whether this is the view of a delivery in the group. Otherwise it is the view that members
    /// of the group had installed when they delivered the message through another group.
    pub(super) is_direct: bool,
}

impl MessageView {
    /// Returns the sort key that decides between two views: direct ones first, then the lowest id.
    pub(super) fn rank(&self) -> (bool, u64) {
        (!self.is_direct, self.view)
    }
}

/// The sender's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum SenderAnswer {
    /// The message has not been answered, or the history does not record that it was accepted.
    #[default]
    None,
    /// The sender accepted the message.
    Taken,
    /// The sender may or may not have accepted the message.
    Unsure,
    /// The sender definitely refused the message.
    Refused,
}

impl SenderAnswer {
    /// Returns whether the sender answered with an error.
    pub(super) fn is_refusal(self) -> bool {
        matches!(self, Self::Unsure | Self::Refused)
    }
}

/// A `multicast`, and the sender's answer to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentMessage {
    /// Its line.
    pub(super) line: u64,
    /// The time of the multicast.
    pub(super) t_ns: u64,
    /// The incarnation that sent the message.
    pub(super) start: StartId,
    /// Its groups.
    pub(super) groups: GroupSetId,
    /// Payload length in bytes.
    pub(super) bytes: Option<u64>,
    /// A hash of the payload's digest.
    pub(super) digest: Option<u64>,
    /// The sender's answer.
    pub(super) answer: SenderAnswer,
    /// The line of the answer.
    pub(super) answer_line: u64,
}

impl SentMessage {
    /// Returns whether the message was definitely not sent, so that most checks ignore it.
    pub(super) fn is_void(&self) -> bool {
        self.answer == SenderAnswer::Refused
    }
}

/// Properties of a delivery, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    /// The node reports that an earlier incarnation had delivered the message.
    pub(super) const REPLAYED: Self = Self(1);
    /// The same incarnation has already delivered the message.
    pub(super) const REPEAT: Self = Self(1 << 1);
    /// The message is not addressed to the node.
    pub(super) const UNADDRESSED: Self = Self(1 << 2);
    /// The group is not one of the message's groups, or the node is not a member of it.
    pub(super) const NO_GROUP: Self = Self(1 << 3);
    /// The delivery precedes the multicast, by time or by the lines of its own incarnation.
    pub(super) const EARLY: Self = Self(1 << 4);
    /// The delivery names another sender.
    pub(super) const SENDER_WRONG: Self = Self(1 << 5);
    /// The delivery and the multicast both give the payload's size or digest.
    pub(super) const BYTES_KNOWN: Self = Self(1 << 6);
    /// The sizes or digests differ.
    pub(super) const BYTES_WRONG: Self = Self(1 << 7);
    /// The delivery names a different view from the one that its incarnation had installed.
    pub(super) const VIEW_WRONG: Self = Self(1 << 8);
    /// The incarnation had installed no view of the group.
    pub(super) const VIEWLESS: Self = Self(1 << 9);
    /// The incarnation had ended.
    pub(super) const AFTER_END: Self = Self(1 << 10);
    /// The delivery was judged before the message was forgotten; its line is lost.
    pub(super) const PAST: Self = Self(1 << 11);
    /// The delivery has been processed, and its position among its incarnation's deliveries is
    /// lost.
    pub(super) const UNPLACED: Self = Self(1 << 12);

    /// Returns whether any of these bits is set.
    pub(super) fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// Sets these.
    pub(super) fn set(&mut self, of: Self) {
        self.0 |= of.0;
    }

    /// Sets these bits if the condition holds.
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

/// The value for "no view".
pub(super) const NO_VIEW: u32 = u32::MAX;

/// A delivery. There are many, so it is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// The delivery's line; 0 if it is past.
    pub(super) line: u64,
    /// The incarnation that delivered.
    pub(super) start: StartId,
    /// The group through which the message was delivered.
    pub(super) group: GroupId,
    /// The index of the view's id among all ids, or [`NO_VIEW`].
    pub(super) view: u32,
    /// Further properties.
    pub(super) marks: Marks,
}

impl Delivery {
    /// Returns whether every check ignores the delivery, except the check for its particular fault.
    pub(super) fn is_passed_over(&self) -> bool {
        self.marks.any(Marks::REPEAT | Marks::UNADDRESSED)
    }

    /// Returns whether the delivery counts for its group and view: it is not a replay, and its
    /// group is one of the message's groups.
    pub(super) fn is_in_view(&self) -> bool {
        !self.marks.any(Marks::REPLAYED | Marks::NO_GROUP | Marks::REPEAT | Marks::UNADDRESSED)
    }
}

/// A delivery's claims about the message, to be compared with the multicast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// The time of the delivery.
    pub(super) t_ns: u64,
    /// Payload length in bytes.
    pub(super) bytes: Option<u64>,
    /// A hash of the payload's digest.
    pub(super) digest: Option<u64>,
    /// The sender.
    pub(super) sender: Option<NodeId>,
}

/// Number of deliveries above which a table indexes them by incarnation.
const CROWD: usize = 96;

/// A held message.
#[derive(Debug, Default)]
pub(super) struct HeldMessage {
    /// Its name.
    pub(super) name: Name,
    /// Whether the slot holds a message now.
    pub(super) is_held: bool,
    /// Distinguishes the message from earlier ones in the same slot.
    pub(super) generation: u32,
    /// The message's multicast, once known.
    pub(super) sent: Option<SentMessage>,
    /// Its deliveries.
    pub(super) deliveries: Vec<Delivery>,
    /// Indexes of each incarnation's first delivery, if there are many.
    firsts: Option<Box<MixedTable<StartId, usize>>>,
    /// The claims of each delivery, until the multicast is known.
    pub(super) claims: Vec<Claim>,
    /// Number of queues that contain the message.
    pub(super) entries: u32,
    /// Number of deliveries that take part in the order between messages.
    pub(super) counted: u32,
    /// Number of those queues that the message heads.
    pub(super) heading: u32,
    /// The message's position in the order, if it has been popped before.
    pub(super) place: Option<u64>,
    /// The message's views in its groups, from past deliveries.
    pub(super) past_views: Vec<(GroupId, MessageView)>,
}

impl HeldMessage {
    /// Creates a message of which nothing is known.
    pub(super) fn new(name: Name, generation: u32) -> Self {
        Self { name, is_held: true, generation, ..Self::default() }
    }

    /// Clears the slot for another message; the lists keep their memory.
    pub(super) fn reset(&mut self) {
        let (mut deliveries, mut past_views) =
            (std::mem::take(&mut self.deliveries), std::mem::take(&mut self.past_views));
        deliveries.clear();
        past_views.clear();
        let next = Self::new(self.name, self.generation.wrapping_add(1));
        *self = Self { is_held: false, deliveries, past_views, ..next };
    }

    /// Adds a delivery.
    pub(super) fn add(&mut self, delivery: Delivery) {
        if let Some(firsts) = &mut self.firsts {
            firsts.entry(delivery.start).or_insert(self.deliveries.len());
        }
        self.deliveries.push(delivery);
        if self.deliveries.len() == CROWD && self.firsts.is_none() {
            let mut firsts: MixedTable<StartId, usize> = MixedTable::default();
            for (place, delivery) in self.deliveries.iter().enumerate() {
                firsts.entry(delivery.start).or_insert(place);
            }
            self.firsts = Some(Box::new(firsts));
        }
    }

    /// Returns an incarnation's first delivery of the message.
    pub(super) fn first_by(&self, start: StartId) -> Option<&Delivery> {
        match &self.firsts {
            Some(firsts) => firsts.get(&start).and_then(|place| self.deliveries.get(*place)),
            None => self.deliveries.iter().find(|delivery| delivery.start == start),
        }
    }

    /// Returns whether the incarnation's delivery counts for checks other than integrity.
    pub(super) fn is_delivered_by(&self, start: StartId) -> bool {
        self.sent.is_some_and(|sent| !sent.is_void())
            && self.first_by(start).is_some_and(|delivery| !delivery.is_passed_over())
    }

    /// Iterates over the deliveries that count for the delivery checks.
    pub(super) fn delivered(&self) -> impl Iterator<Item = &Delivery> {
        let void = self.sent.is_none_or(|sent| sent.is_void());
        self.deliveries.iter().filter(move |delivery| !void && !delivery.is_passed_over())
    }

    /// Marks a delivery with the result of comparing it with the multicast.
    pub(super) fn compared(
        sent: &SentMessage,
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
    fn first_delivery_is_found_among_any_number() {
        let mut message = HeldMessage::new(Name { prefix: 1, number: 0 }, 0);
        for line in 1..=3 * CROWD as u64 {
            // Each incarnation delivers twice in a row.
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
