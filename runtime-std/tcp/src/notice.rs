//! Messages from a peer that the member must learn of.

use tramontane_core::fabric::{BlockEvent, PermissionEvent, Token};
use tramontane_core::ids::{Rank, ViewId};

use super::regions::AskedRead;

/// A message from a peer that the member must learn of.
#[derive(Debug)]
pub(super) enum Notice {
    /// Both ends have opened this view, in which the peer has this rank.
    Ready(ViewId, Rank),
    /// It rang.
    Rung,
    /// It leaves.
    Left,
    /// The peer has cut off this member.
    Denied,
    /// A block from the peer has arrived.
    Block(BlockEvent),
    /// The peer has finished a list with this token, or the answer to a read has arrived.
    Completed(Token),
    /// The peer has granted or revoked a right.
    Permission(PermissionEvent),
    /// The peer requests bytes of a region.
    Asked(AskedRead),
    /// The peer has ended a view, and waits for this end to acknowledge that.
    Ended(ViewId),
}
