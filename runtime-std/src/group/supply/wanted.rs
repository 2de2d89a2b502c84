//! The requests of a joiner to a member.

use tramontane_core::ids::SubgroupId;

/// The subgroups that a node wants to be supplied with.
pub(crate) struct Wanted {
    pub(crate) subgroups: Vec<SubgroupId>,
    /// The subgroups for which it wants the records from a number on, instead of a state.
    pub(crate) records: Vec<(SubgroupId, u64)>,
}
