//! A handle to the reserved subgroups, which views open and close.

use tramontane_core::ids::SubgroupId;

use super::request::{Request, Requests};
use crate::group::description::subgroup_change::{ChangedPart, SubgroupChange};

/// Opens and closes the reserved subgroups of a group. A handle may be owned by any thread, and may
/// be used in an upcall.
#[derive(Clone)]
pub struct ReservedSubgroups {
    requests: Requests,
}

impl ReservedSubgroups {
    pub(crate) fn new(requests: &Requests) -> Self {
        Self { requests: requests.clone() }
    }

    /// Requests a view in which a reserved subgroup has the members listed in its description. The
    /// subgroup starts without messages, and applications reset its state when that view begins.
    /// Nothing happens if the subgroup is already open or is not reserved. The request persists
    /// across views until the subgroup is open in one of them, and ends with this member. Returns
    /// false if the member has ended.
    pub fn open(&self, subgroup: SubgroupId) -> bool {
        self.ask(subgroup, true)
    }

    /// Requests a view in which a reserved subgroup has no members. Messages delivered before that
    /// view are delivered at all members of the subgroup; messages that have been sent but not
    /// delivered by then are dropped. A receipt for a dropped message stays as it was, and is
    /// meaningless once the subgroup has been reopened. The subgroup's clients are forgotten. Its
    /// followers receive everything that was delivered, and then learn that the subgroup is closed.
    /// Otherwise, this behaves like [`ReservedSubgroups::open`].
    pub fn close(&self, subgroup: SubgroupId) -> bool {
        self.ask(subgroup, false)
    }

    fn ask(&self, subgroup: SubgroupId, is_on: bool) -> bool {
        let change = SubgroupChange { subgroup, part: ChangedPart::Whole, is_on };
        self.requests.ask(Request::Change(change))
    }
}

impl std::fmt::Debug for ReservedSubgroups {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ReservedSubgroups").finish_non_exhaustive()
    }
}
