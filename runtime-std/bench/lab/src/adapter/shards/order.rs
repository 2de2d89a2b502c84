//! Decides which of a client's messages may be sent while others are in flight.
//!
//! Messages with the same lowest common ancestor are delivered in the order in which they were
//! multicast; other messages have no such order. The judged guarantee concerns the messages of one
//! client to one group. So a message waits until the messages that are ordered elsewhere and share
//! a destination with it have been answered.

use tramontane_runtime::shards::{Destinations, GroupId, MessageId};

/// A message that is still unanswered.
#[derive(Debug)]
struct UnansweredMessage {
    id: MessageId,
    /// The group that orders the message first.
    first: GroupId,
    destinations: Destinations,
}

/// The messages in flight.
#[derive(Debug, Default)]
pub(super) struct InOrder(Vec<UnansweredMessage>);

impl InOrder {
    /// Returns whether a message that is ordered first by that group may be sent now.
    pub(super) fn may_go(&self, first: GroupId, destinations: Destinations) -> bool {
        let follows = |other: &UnansweredMessage| {
            other.first == first || !other.destinations.meets(destinations)
        };
        self.0.iter().all(follows)
    }

    /// Records that a message has been sent.
    pub(super) fn went(&mut self, id: MessageId, first: GroupId, destinations: Destinations) {
        self.0.push(UnansweredMessage { id, first, destinations });
    }

    /// Removes a message whose answers have arrived.
    pub(super) fn answered(&mut self, id: MessageId) {
        self.0.retain(|message| message.id != id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tramontane_core::ids::ClientNumber;

    #[test]
    fn message_waits_for_earlier_overlapping_messages() {
        let groups = |list: &[u16]| {
            list.iter().fold(Destinations::default(), |set, group| set.with(GroupId(*group)))
        };
        let id = |number| MessageId { client: ClientNumber(0), incarnation: 1, number };
        let mut sent = InOrder::default();
        sent.went(id(0), GroupId(0), groups(&[1, 2]));
        assert!(sent.may_go(GroupId(0), groups(&[1, 2])), "ordered by the same group");
        assert!(!sent.may_go(GroupId(1), groups(&[1])), "ordered elsewhere");
        assert!(sent.may_go(GroupId(3), groups(&[3])), "nothing in common");
        sent.went(id(1), GroupId(3), groups(&[3]));
        sent.answered(id(0));
        assert!(sent.may_go(GroupId(1), groups(&[1])) && !sent.is_empty());
        assert!(!sent.may_go(GroupId(0), groups(&[0, 3])));
        sent.answered(id(1));
        assert!(sent.may_go(GroupId(0), groups(&[0, 3])) && sent.is_empty());
    }
}
