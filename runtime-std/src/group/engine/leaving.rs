//! How a member leaves: not before the nodes that it supplies have what they need of it (VIE-9,
//! VIE-10).
//!
//! - Asked to leave, it takes on no other node, and waits for those that it supplies: for longer
//!   where they would lose the state for good without it.
//! - Once the next view is decided, it stays until the nodes that it admits are told.
//!
//! Neither wait is without end.

use tramontane_core::ids::Time;

/// How far a member is on its way out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaving {
    /// When it was asked to leave.
    pub(crate) since: Option<Time>,
    /// The group knows, in the present view.
    pub(crate) is_asked: bool,
    /// It is out; until when it stays for the nodes that were admitted.
    pub(crate) out_until: Option<Time>,
}

impl Leaving {
    pub(crate) const fn is_leaving(&self) -> bool {
        self.since.is_some()
    }

    /// Another view begins: what was asked of the last one counts no more.
    pub(crate) const fn view_begins(&mut self) {
        self.is_asked = false;
    }
}
