//! What an application is told: messages, and the view that it is in.

use tramontane_control::client_messages::ClientId;
use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};

use crate::group::description::view::View;

/// A view that was installed.
#[derive(Clone, Copy, Debug)]
pub struct ViewChanged<'a> {
    /// The view.
    pub view: &'a View,
    /// The own node.
    pub own: NodeId,
    /// The nodes that joined.
    pub joined: &'a [NodeId],
    /// The nodes that left, or were lost.
    pub gone: &'a [NodeId],
}

/// A message, lent until the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// The view that it was delivered in.
    pub view: ViewId,
    /// Its place in the view's delivery order of the subgroup: rises, and is the same at all
    /// members.
    pub place: Place,
    /// The member that sent it.
    pub sender: NodeId,
    /// The bytes. They may be none. They lie where the sender writes: an application that does not
    /// trust all members copies them before it validates them, and uses the copy.
    pub payload: &'a [u8],
    /// The client from outside that published it, if the subgroup takes clients (EXT-1): `sender`
    /// is the member that it was at. None if the member sent it itself.
    pub client: Option<ClientId>,
    /// It came as a large message.
    pub is_large: bool,
    /// It was delivered before this member joined, and after the state that it took over.
    pub is_replayed: bool,
}

/// A message of a view, as the application sees it.
#[inline]
pub(crate) fn message_of<'b>(
    subgroup: SubgroupId,
    view: &View,
    message: &tramontane_core::multicast::Message<'_>,
    payload: &'b [u8],
) -> Message<'b> {
    Message {
        subgroup,
        view: view.id,
        place: message.place,
        // A rank of the view has a node.
        sender: view.members.get(message.rank.index()).copied().unwrap_or_default(),
        payload,
        client: None,
        is_large: message.large.is_some(),
        is_replayed: false,
    }
}
