//! What a peer has sent that the member must learn of.

use tramontane_core::fabric::{BlockEvent, PermissionEvent, Token};
use tramontane_core::ids::{Rank, ViewId};

use super::regions::AskedRead;

/// What a peer has sent that the member must learn of.
#[derive(Debug)]
pub(super) enum Notice {
    /// Both ends have opened this view, in which the peer has this rank.
    Ready(ViewId, Rank),
    /// It rang.
    Rung,
    /// It leaves.
    Left,
    /// It cut this member off.
    Denied,
    /// A block of it is here.
    Block(BlockEvent),
    /// It is done with a list that was posted with this token, or the answer to a read is here.
    Completed(Token),
    /// It gave a right, or took one back.
    Permission(PermissionEvent),
    /// It asks for bytes of a region.
    Asked(AskedRead),
    /// It ended a view, and waits to hear that this end knows.
    Ended(ViewId),
}
