//! The names of nodes and groups in histories.

/// Returns the name of a node in histories.
pub(super) fn node_name(node: usize) -> String {
    format!("n{node}")
}

/// Returns the name of a group in histories.
pub(super) fn group_name(group: usize) -> String {
    format!("g{group}")
}
