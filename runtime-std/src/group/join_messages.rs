//! The messages between a joiner and a member that supplies it.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::admission::{End, Sent};
use super::durable::LogPlace;
use super::replica::Message;
use super::view::WireView;

/// A joiner's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum JoinRequest {
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
pub(super) enum JoinReply {
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
    Member { view: WireView, ends: Vec<End>, sent: Vec<Sent> },
}

/// A delivered message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Delivered {
    pub(super) subgroup: u16,
    pub(super) view: u64,
    pub(super) place: u64,
    pub(super) sender: u32,
    pub(super) is_large: bool,
    pub(super) payload: Vec<u8>,
}

/// A delivered message, held once for all queues that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shared(pub(super) Arc<Delivered>);

impl Shared {
    pub(super) fn of(message: &Message<'_>) -> Self {
        Self(Arc::new(Delivered {
            subgroup: message.subgroup.0,
            view: message.view.0,
            place: message.place.0,
            sender: message.sender.get(),
            is_large: message.is_large,
            payload: message.payload.to_vec(),
        }))
    }
}

impl Deref for Shared {
    type Target = Delivered;

    fn deref(&self) -> &Delivered {
        &self.0
    }
}

impl Serialize for Shared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shared {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Delivered::deserialize(deserializer).map(|delivered| Self(Arc::new(delivered)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};

    use super::*;

    /// Some message of these bytes.
    pub(in crate::group) fn message(payload: &[u8]) -> Shared {
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
