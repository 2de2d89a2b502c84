//! The messages between a joining node and a member that supplies it.

use serde::{Deserialize, Serialize};

use super::admission::{SentCount, SubgroupEnd};
use crate::group::description::view::WireView;
use crate::group::durable::comparison::LogPlace;
use crate::group::durable::delivered::{Delivered, SharedMessage};

/// A joiner's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JoinRequest {
    /// Asks for the current view.
    Welcome,
    /// Asks how many records of a logged subgroup the two logs have in common, given the end of the
    /// joining node's log.
    Compare { subgroup: u16, last: Option<LogPlace> },
    /// Asks for the records of a logged subgroup from `from` up to, but not including, `to`.
    Fetch { subgroup: u16, from: u64, to: u64 },
    /// Asks for the state of these subgroups; for some of them, for the records starting at a
    /// number instead. If `leads` is true, the member is to lead the join: it will ask the group to
    /// admit the joining node.
    Supply { subgroups: Vec<u16>, leads: bool, records: Vec<(u16, u64)> },
    /// Every state has been restored, each subgroup's from the given node, and the joining node can
    /// be admitted. Sent to the member that leads the join.
    Ready { sources: Vec<(u16, u32)> },
    /// The view is open at the joining node, and this session is no longer needed.
    Up,
    /// These members do not answer the joining node, so it must not be admitted yet.
    Unreached { members: Vec<u32> },
}

/// A member's replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JoinReply {
    /// The reply to `Welcome`: the current view.
    View(WireView),
    /// The request cannot be met now, for the given reason. The joining node asks again.
    NotNow(String),
    /// The state of a subgroup in that view follows as a stream. If the subgroup is logged, this is
    /// the state after the first `records` records of its log.
    State { subgroup: u16, view: u64, records: u64 },
    /// The number of records that the two logs have in common, if this member has all later
    /// records. `None` if the number is unknown or a later record is missing.
    Common { records: Option<u64> },
    /// Records of a log, the first of which has number `first`. `is_last` is true if there are no
    /// more.
    Records { subgroup: u16, first: u64, records: Vec<Delivered>, is_last: bool },
    /// Messages delivered after the state, in order.
    Messages(Vec<SharedMessage>),
    /// Everything delivered while the states were being sent has been sent too. The joining node
    /// tells the leading member when it is ready.
    CaughtUp,
    /// The joiner's sources do not match this view, or it has members that the joiner has not
    /// called: the joiner must call them and fetch what is missing, and report again that it is
    /// ready.
    Choose(WireView),
    /// The joining node is a member of this view, and this member has sent everything that precedes
    /// the view: `sent` has the counts, and `ends` the end of the previous view in each subgroup.
    Member { view: WireView, ends: Vec<SubgroupEnd>, sent: Vec<SentCount> },
}

#[cfg(test)]
pub(crate) mod tests {
    use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};

    use super::*;
    use crate::group::delivery::message::Message;

    /// Creates a message with this payload.
    pub(crate) fn message(payload: &[u8]) -> SharedMessage {
        let (subgroup, sender) = (SubgroupId(0), NodeId(3));
        let (view, place) = (ViewId(1), Place(2));
        let (client, is_large, is_replayed) = (None, false, false);
        SharedMessage::of(&Message {
            subgroup,
            view,
            place,
            sender,
            payload,
            client,
            is_large,
            is_replayed,
        })
    }

    #[test]
    fn shared_messages_round_trip() {
        let said = JoinReply::Messages(vec![message(b"one"), message(b"")]);
        let bytes = postcard::to_stdvec(&said).expect("bytes");
        assert_eq!(postcard::from_bytes::<JoinReply>(&bytes).expect("the same"), said);
    }
}
