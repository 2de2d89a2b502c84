//! Handles views without members. Earlier versions decided such views when all members left at once
//! and were restarted; this version no longer does (DUR-12).
//!
//! No node ever did anything in such a view, so it is treated as the view of the nodes that took
//! part in deciding it. They were members of the previous view: once they form a majority of all
//! nodes of each logged subgroup, one of them has everything that was durable at a majority.

use tramontane_core::ids::{NodeId, ViewId};
use tramontane_core::restart::Want;

use super::messages::NodeAnswer;
use crate::group::description::view::{View, WireView};

/// The reason why such a view cannot be given members yet, with the view and the nodes that could
/// help.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooFew {
    pub(super) view: u64,
    pub(super) want: Want,
    pub(super) missing: Vec<u32>,
}

/// Returns the answers, with members in the newest view.
pub(super) fn with_members(
    answers: &[NodeAnswer],
    logged: &[&[NodeId]],
    with_less: bool,
) -> Result<Vec<NodeAnswer>, TooFew> {
    let decided = || answers.iter().filter_map(|answer| answer.decided.as_ref());
    let newest = decided().map(WireView::id).max().unwrap_or(0);
    let is_nobodys = |view: &WireView| view.id() == newest && view.members().is_empty();
    if !decided().any(is_nobodys) {
        return Ok(answers.to_vec());
    }
    // An earlier restart that noted its base may already have given the view members.
    let given = decided().find(|view| view.id() == newest && !is_nobodys(view)).cloned();
    let view = match given {
        Some(view) => view,
        None => view_of_those_that_decided(answers, newest, logged, with_less)?,
    };
    let with_view = |answer: &NodeAnswer| {
        let decided = answer.decided.as_ref();
        let decided = decided.map(|own| if is_nobodys(own) { &view } else { own }).cloned();
        NodeAnswer { decided, ..answer.clone() }
    };
    Ok(answers.iter().map(with_view).collect())
}

fn view_of_those_that_decided(
    answers: &[NodeAnswer],
    id: u64,
    logged: &[&[NodeId]],
    with_less: bool,
) -> Result<WireView, TooFew> {
    let took_part = |answer: &&NodeAnswer| {
        let has_decided = answer.decided.as_ref().is_some_and(|view| view.id() == id);
        has_decided || answer.promise.as_ref().is_some_and(|promise| promise.view == id)
    };
    let nodes = answers.iter().filter(took_part).map(|answer| NodeId(answer.node));
    let mut members: Vec<NodeId> = nodes.collect();
    members.sort_unstable();
    for (at, nodes) in logged.iter().enumerate().filter(|_| !with_less) {
        let missing = nodes.iter().filter(|node| !members.contains(node)).map(|node| node.get());
        let missing: Vec<u32> = missing.collect();
        if missing.len() * 2 >= nodes.len() {
            return Err(TooFew { view: id, want: Want::SubgroupMajority(at), missing });
        }
    }
    // That view closed all subgroups, but their logs exist.
    Ok(WireView::from(&View::with_all_senders(ViewId(id), members, Vec::new())))
}
