//! The messages between a joiner and a member that supplies it.

use serde::{Deserialize, Serialize};

use super::admission::{SentCount, SubgroupEnd};
use crate::group::description::view::WireView;
use crate::group::durable::comparison::LogPlace;
use crate::group::durable::delivered::{Delivered, Shared};

/// A joiner's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JoinRequest {
    /// Which view is it?
    Welcome,
    /// How many records of a logged subgroup are the same, if the joiner's log ends there?
    Compare { subgroup: u16, last: Option<LogPlace> },
    /// The records of a logged subgroup from one number to before another.
    Fetch { subgroup: u16, from: u64, to: u64 },
    /// The state of these subgroups, or of some the records from a number on. The member that leads
    /// the join asks the group to admit the joiner.
    Supply { subgroups: Vec<u16>, leads: bool, records: Vec<(u16, u64)> },
    /// Every state is restored, each subgroup's from this node: the joiner can be admitted. Sent to
    /// the member that leads.
    Ready { sources: Vec<(u16, u32)> },
    /// The view is open: this session is not needed any more.
    Up,
    /// These members do not answer the joiner: it is not to be let in yet.
    Unreached { members: Vec<u32> },
}

/// A member's replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JoinReply {
    /// The present view.
    View(WireView),
    /// It is not possible now, and why; ask again.
    NotNow(String),
    /// The state of a subgroup follows, as a stream: as it is in that view after so many records
    /// of the subgroup's log, if it is logged.
    State { subgroup: u16, view: u64, records: u64 },
    /// So many records of the joiner's log are those of this member's, which has all that come
    /// behind them; nothing if it does not know, or has not.
    Common { records: Option<u64> },
    /// Records of a log, the first of that number; the last ones that there are if it says so.
    Records { subgroup: u16, first: u64, records: Vec<Delivered>, is_last: bool },
    /// Messages that were delivered since, in their order.
    Messages(Vec<Shared>),
    /// All that was delivered while the states were sent has been sent too. The joiner tells the
    /// leading member when it is ready.
    CaughtUp,
    /// The joiner's sources are not those of this view: fetch what is missing, and be ready again.
    Choose(WireView),
    /// The joiner is a member of this view, and this member has sent everything that came before
    /// it: `sent` says how much. `ends` says where the view before ended in each subgroup.
    Member { view: WireView, ends: Vec<SubgroupEnd>, sent: Vec<SentCount> },
}

#[cfg(test)]
pub(crate) mod tests {
    use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};

    use super::*;
    use crate::group::delivery::message::Message;

    /// Some message of these bytes.
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
    fn what_is_shared_is_said_as_it_was() {
        let said = JoinReply::Messages(vec![message(b"one"), message(b"")]);
        let bytes = postcard::to_stdvec(&said).expect("bytes");
        assert_eq!(postcard::from_bytes::<JoinReply>(&bytes).expect("the same"), said);
    }
}
