//! How a member leaves: only when the nodes that it supplies have what they need from it (VIE-9,
//! VIE-10).
//!
//! - A member that is asked to leave supplies no further node, and waits for those that it is
//!   supplying: for longer if they would otherwise lose the state for good.
//! - Once the next view is decided, it stays until the nodes that the view admits are told.
//!
//! Both waits are bounded.

use tramontane_core::ids::Time;

/// The progress of a member that leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaving {
    /// The time when it was asked to leave.
    pub(crate) since: Option<Time>,
    /// Whether the group was asked, in the present view.
    pub(crate) is_asked: bool,
    /// Set once the member is out: how long it stays for the nodes that were admitted.
    pub(crate) out_until: Option<Time>,
}

impl Leaving {
    pub(crate) const fn is_leaving(&self) -> bool {
        self.since.is_some()
    }

    /// Clears the request to the group, which was made in the last view.
    pub(crate) const fn view_begins(&mut self) {
        self.is_asked = false;
    }
}
