//! The names of nodes and groups in histories.

/// The name of a node in histories.
pub(super) fn node_name(node: usize) -> String {
    format!("n{node}")
}

/// The name of a group in histories.
pub(super) fn group_name(group: usize) -> String {
    format!("g{group}")
}
