//! The reason that a member was not started.

use super::protocol::Init;
use tramontane_local::exit::Failure;

/// The reason that a member was not started.
pub(super) enum StartRefusal {
    /// This program does not support the request.
    Unsupported(String),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for StartRefusal {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

pub(super) fn not_understood(what: impl std::fmt::Display) -> Failure {
    Failure::input(what, "only the conformance suite starts this command")
}

/// Returns the id of a node by its name.
pub(super) fn node_id(init: &Init, name: &str) -> Result<u32, StartRefusal> {
    let found = (0..).zip(&init.nodes).find(|(_, node)| node.node == name);
    found.map(|(id, _)| id).ok_or_else(|| {
        StartRefusal::Failed(not_understood(format_args!(
            "\"{name}\" is not among the nodes of \"init\""
        )))
    })
}
