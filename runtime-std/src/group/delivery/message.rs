//! The messages and views that an application receives.

use tramontane_control::client_messages::ClientId;
use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};

use crate::group::description::view::View;

/// A newly installed view.
#[derive(Clone, Copy, Debug)]
pub struct ViewChanged<'a> {
    /// The view.
    pub view: &'a View,
    /// This node.
    pub own: NodeId,
    /// The nodes that joined.
    pub joined: &'a [NodeId],
    /// The nodes that left or failed.
    pub gone: &'a [NodeId],
}

/// A message, borrowed until the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// The view in which the message was delivered.
    pub view: ViewId,
    /// The message's place in the delivery order of its subgroup in this view. Places ascend, and
    /// are the same at all members.
    pub place: Place,
    /// The member that sent the message.
    pub sender: NodeId,
    /// The payload, possibly empty. It is in memory that the sender can write to: an application
    /// that does not trust all members must copy the payload, and then validate and use only the
    /// copy.
    pub payload: &'a [u8],
    /// The external client that published the message, if the subgroup accepts clients (EXT-1);
    /// `sender` is then the member that the client was connected to. `None` if the member itself
    /// sent the message.
    pub client: Option<ClientId>,
    /// Whether the message was sent as a large message.
    pub is_large: bool,
    /// Whether the message was delivered before this member joined, and after the point of the
    /// state that this member restored.
    pub is_replayed: bool,
}

/// Converts a message of a view to the form that the application sees.
#[inline(always)]
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
        // Every rank of the view has a node.
        sender: view.members.get(message.rank.index()).copied().unwrap_or_default(),
        payload,
        client: None,
        is_large: message.large.is_some(),
        is_replayed: false,
    }
}
