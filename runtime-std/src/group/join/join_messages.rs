//! The messages between a joiner and a member that supplies it.

use serde::{Deserialize, Serialize};

use super::admission::{SentCount, SubgroupEnd};
use crate::group::description::view::WireView;
use crate::group::durable::comparison::LogPlace;
use crate::group::durable::delivered::{Delivered, Shared};

/// A joiner's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JoinRequest {
    /// Asks for the present view.
    Welcome,
    /// Asks how many records of a logged subgroup are the same, given the end of the joiner's log.
    Compare { subgroup: u16, last: Option<LogPlace> },
    /// Asks for the records of a logged subgroup from `from` to before `to`.
    Fetch { subgroup: u16, from: u64, to: u64 },
    /// Asks for the state of these subgroups, or for some of them the records from a number on. The
    /// member that leads the join asks the group to admit the joiner.
    Supply { subgroups: Vec<u16>, leads: bool, records: Vec<(u16, u64)> },
    /// Every state is restored, each subgroup's from the node given, and the joiner can be
    /// admitted. Sent to the member that leads.
    Ready { sources: Vec<(u16, u32)> },
    /// The view is open, and this session is no longer needed.
    Up,
    /// These members do not answer the joiner, so it must not be admitted yet.
    Unreached { members: Vec<u32> },
}

/// A member's replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JoinReply {
    /// The present view.
    View(WireView),
    /// The request cannot be met now, for this reason; the joiner asks again.
    NotNow(String),
    /// The state of a subgroup follows as a stream: the state in that view, after the first
    /// `records` records of the subgroup's log if it is logged.
    State { subgroup: u16, view: u64, records: u64 },
    /// The number of records that the joiner's log has in common with this member's, if this member
    /// has all records after them; `None` if it does not know, or lacks some.
    Common { records: Option<u64> },
    /// Records of a log, the first of which has that number; `is_last` if there are no more.
    Records { subgroup: u16, first: u64, records: Vec<Delivered>, is_last: bool },
    /// Messages delivered since the state, in order.
    Messages(Vec<Shared>),
    /// Everything delivered while the states were sent has been sent too. The joiner tells the
    /// leading member when it is ready.
    CaughtUp,
    /// The joiner's sources do not match this view: it must fetch what is missing, and report again
    /// that it is ready.
    Choose(WireView),
    /// The joiner is a member of this view, and this member has sent everything that came before
    /// it: `sent` has the counts. `ends` says where the previous view ended in each subgroup.
    Member { view: WireView, ends: Vec<SubgroupEnd>, sent: Vec<SentCount> },
}

#[cfg(test)]
pub(crate) mod tests {
    use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};

    use super::*;
    use crate::group::delivery::message::Message;

    /// Creates a message with this payload.
    pub(crate) fn message(payload: &[u8]) -> Shared {
        let (subgroup, sender) = (SubgroupId(0), NodeId(3));
        let (view, place) = (ViewId(1), Place(2));
        let (client, is_large, is_replayed) = (None, false, false);
        Shared::of(&Message {
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
