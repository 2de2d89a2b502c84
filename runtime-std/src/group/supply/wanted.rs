//! What a joiner wants of a member.

use tramontane_core::ids::SubgroupId;

/// What a node is to be supplied with.
pub(crate) struct Wanted {
    pub(crate) subgroups: Vec<SubgroupId>,
    /// Of these the records from a number on, instead of a state.
    pub(crate) records: Vec<(SubgroupId, u64)>,
}
