//! The handle of reserved subgroups, which views open and close.

use tramontane_core::ids::SubgroupId;

use super::request::{Request, Requests};
use crate::group::description::subgroup_change::SubgroupChange;

/// Opens and closes the reserved subgroups of a group. Any thread may have one, also one that is in
/// an upcall.
#[derive(Clone)]
pub struct ReservedSubgroups {
    requests: Requests,
}

impl ReservedSubgroups {
    pub(crate) fn new(requests: &Requests) -> Self {
        Self { requests: requests.clone() }
    }

    /// Asks for a view in which a reserved subgroup has members: those of its description. It has
    /// no messages then, and applications begin its state anew when they are told of that view.
    /// Where it is open, or is not reserved, nothing happens. The request outlives views, until one
    /// has it open, and ends with this member. False if the member has ended.
    pub fn open(&self, subgroup: SubgroupId) -> bool {
        self.requests.ask(Request::Change(SubgroupChange { subgroup, opens: true }))
    }

    /// Asks for a view in which a reserved subgroup has no members. What is delivered of it before
    /// is delivered at all its members; what was sent and is not delivered by then is dropped, and
    /// a receipt for that says no more than it did, until the subgroup is open again: then it says
    /// nothing that counts. What was known of its clients is forgotten; those that follow it are
    /// told that it is closed, once they have been told all that was delivered. As
    /// [`ReservedSubgroups::open`] otherwise.
    pub fn close(&self, subgroup: SubgroupId) -> bool {
        self.requests.ask(Request::Change(SubgroupChange { subgroup, opens: false }))
    }
}

impl std::fmt::Debug for ReservedSubgroups {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ReservedSubgroups").finish_non_exhaustive()
    }
}
