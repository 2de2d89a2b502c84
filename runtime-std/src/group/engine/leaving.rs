//! The departure of a member, which leaves only after the nodes that it supplies have received what
//! they need (VIE-9, VIE-10).
//!
//! - A member that has been asked to leave supplies no further nodes, and waits for those that it
//!   is supplying. It waits longer if they would otherwise lose the state for good.
//! - Once the next view has been decided, the member stays until the nodes that the view admits
//!   have been informed.
//!
//! Both waits are bounded.

use tramontane_core::ids::Time;

/// The progress of a leaving member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaving {
    /// The time when the member was asked to leave.
    pub(crate) since: Option<Time>,
    /// Whether the group has been asked in the current view.
    pub(crate) is_asked: bool,
    /// Set once the member is out of the view: the time until which it stays for the admitted
    /// nodes.
    pub(crate) out_until: Option<Time>,
}

impl Leaving {
    pub(crate) const fn is_leaving(&self) -> bool {
        self.since.is_some()
    }

    /// Clears the request to the group, which was made in the previous view.
    pub(crate) const fn view_begins(&mut self) {
        self.is_asked = false;
    }
}
