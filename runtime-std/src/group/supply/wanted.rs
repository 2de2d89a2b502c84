//! A joining node's requests to a member.

use tramontane_core::ids::SubgroupId;

/// The subgroups that a node asks to be supplied with.
pub(crate) struct Wanted {
    pub(crate) subgroups: Vec<SubgroupId>,
    /// The subgroups for which the node asks for records starting at a number, instead of a state.
    pub(crate) records: Vec<(SubgroupId, u64)>,
}
