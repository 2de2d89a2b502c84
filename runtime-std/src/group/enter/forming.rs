//! Whether the initial nodes may form the group (VIE-12).
//!
//! To form a group again is a decision: the one that was formed before may go on somewhere. So
//! every initial node states at the barrier what it remembers, and all of them reach the same
//! verdict: a group is formed if none of them was ever a member of it, and each has a place to
//! remember it in; or if each was told to form a new one. A live process that is a member forbids
//! it in any case, where that can be seen: on shared memory.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tramontane_core::ids::NodeId;

use crate::group::state::last_membership::{LastMembership, MembershipEnd};

/// How a process takes part in forming its group.
#[derive(Clone, Debug, Default)]
pub struct Forming {
    /// The folder where this node remembers its membership; that of the description if there is
    /// none here. Without one a node on a network forms no group, unless it is told to form a new
    /// one.
    pub state: Option<PathBuf>,
    /// Form the group anew, whatever was before: all initial nodes must be told so. A person
    /// decides this, once: two groups of one name may run if members of the earlier one are only
    /// out of reach. A group that is found running is joined all the same.
    pub new_group: bool,
    /// Be a member from the first view on, or not at all: a group of this name that runs is not
    /// joined, and that is an error. For groups that live for one task. All nodes of the
    /// description must be initial ones.
    pub first_view_only: bool,
    /// Restart a group that logs with the nodes that are there, whatever only others have: that is
    /// lost. A person decides this, once, at one node, if the others never come back.
    pub with_less: bool,
    /// Called with what this node waits for, once it has waited for a few seconds, and every few
    /// seconds again.
    pub told: Option<fn(&Waiting)>,
}

/// What a node waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// For the initial nodes that are missing.
    Forming {
        /// Their ids.
        missing: Vec<u32>,
        /// Why this node would not form the group even if they came.
        but: Option<NotFormed>,
    },
    /// For a running member: it may not form the group.
    Member {
        /// The nodes that may.
        initial: Vec<u32>,
        /// Why they do not, as far as this node knows it.
        but: Option<NotFormed>,
    },
    /// For nodes without which the group cannot go on from its logs.
    Restart(RestartWaiting),
    /// For a node: the process at its address did not show that it has the key.
    Stranger {
        /// The node.
        node: u32,
        /// Where, and how it answered.
        answer: String,
    },
    /// For the nodes that have the group's logs: this one has nothing of the group.
    Others {
        /// One that has something, and waits for the others that have.
        node: u32,
    },
}

/// What a group that restarts waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestartWaiting {
    /// The view whose members are waited for.
    pub view: u64,
    /// The nodes of which some have to come. None, if all are here and cannot go on yet.
    pub missing: Vec<u32>,
    /// Why they are waited for, or what failed last.
    pub why: String,
}

impl fmt::Display for RestartWaiting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { view, missing, why } = self;
        match (missing.is_empty(), why.is_empty()) {
            (true, true) => return out.write_str("restarting; waiting for the other nodes"),
            (true, false) => return write!(out, "restarting; {why}"),
            (false, _) => {}
        }
        write!(out, "restarting view {view}; waiting for {}: {why}", List(missing))
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forming { missing, but: None } if missing.is_empty() => {
                out.write_str("forming; waiting until all initial nodes have met")
            }
            Self::Forming { missing, but: None } => {
                write!(out, "forming; waiting for {}", List(missing))
            }
            Self::Forming { missing, but: Some(but) } => {
                write!(out, "waiting for {}, or for a running member: {but}", List(missing))
            }
            Self::Member { initial, but: None } => {
                write!(
                    out,
                    "waiting for a running member; the group is formed by {}",
                    List(initial)
                )
            }
            Self::Member { but: Some(but), .. } => {
                write!(out, "waiting for a running member: {but}")
            }
            Self::Restart(waiting) => waiting.fmt(out),
            Self::Stranger { node, answer } => {
                write!(out, "waiting for {node}: what answers at {answer}")
            }
            Self::Others { node } => {
                write!(out, "waiting for {node}, which restarts from its log; {}", others(*node))
            }
        }
    }
}

/// What to do at a node without a log while another one restarts.
pub(crate) fn others(node: u32) -> String {
    format!(
        "this node has nothing of the group: start the other nodes that have, give this one its folders back, or, if \
         they are lost for good, start node {node} again with --restart-with-less"
    )
}

/// What an initial node states at the barrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Statement {
    pub(crate) remembers: Remembers,
    pub(crate) new_group: bool,
    /// Members that live, as far as this node can see that, and do not meet.
    pub(crate) living: Vec<u32>,
}

/// What a node knows of the group before this start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Remembers {
    /// It has no folder to remember anything.
    Nothing,
    /// It was never a member.
    Fresh,
    /// It was a member.
    View { view: u64, members: Vec<u32>, end: Option<MembershipEnd> },
    /// It has logs of so many records, and has forgotten of which view.
    Log { records: u64 },
}

impl Remembers {
    /// What a node knows that has such a record, and so many records in its logs.
    pub(crate) fn of(last: Option<&LastMembership>, records: u64) -> Self {
        match last.filter(|last| !last.is_note()) {
            Some(LastMembership { view, members, end, .. }) => {
                Self::View { view: *view, members: members.clone(), end: *end }
            }
            None if records > 0 => Self::Log { records },
            None => Self::Fresh,
        }
    }
}

/// Why the initial nodes do not form their group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotFormed {
    /// A process of the group lives.
    #[error(
        "node {node} is a member of the group still, and does not answer; let it go on, or end its process before the \
         group is formed anew"
    )]
    Lives {
        /// The node.
        node: u32,
    },
    /// A node was a member before.
    #[error(
        "node {node} was a member before, in view {view} of {}, and {how}; start a member that still has the group's \
         state",
        List(members)
    )]
    WasMember {
        /// The node.
        node: u32,
        /// The newest view that it was in.
        view: u64,
        /// Its members.
        members: Vec<u32>,
        /// How it ended.
        how: &'static str,
    },
    /// A node has a log of the group, and has lost its record of the membership.
    #[error(
        "node {node} has a log of {records} records of this group, and no record of the membership; start a member that \
         still has one, or start the node whose log goes furthest with --restart-with-less"
    )]
    HasLog {
        /// The node.
        node: u32,
        /// How many records.
        records: u64,
    },
    /// A node has no folder to remember anything.
    #[error(
        "node {node} cannot know whether it was a member before; give each node a --log or a --state folder"
    )]
    NoState {
        /// The node.
        node: u32,
    },
    /// A node was not told to form a new group.
    #[error(
        "node {node} was started without --new-group; leave it out at all nodes, or give it to each initial node"
    )]
    NotTold {
        /// The node.
        node: u32,
    },
}

impl NotFormed {
    /// What else may be done once the nodes have met in vain. Nothing that is known of the group
    /// runs then, and nothing is logged.
    pub(crate) const fn last_resort(&self) -> &'static str {
        match self {
            Self::WasMember { .. } | Self::NoState { .. } => {
                ", or, if none is left anywhere, form a new group: --new-group at each initial node (files of --log are \
                 kept)"
            }
            Self::Lives { .. } | Self::HasLog { .. } | Self::NotTold { .. } => "",
        }
    }
}

/// The verdict of all initial nodes, the same at each.
pub(crate) fn judge(said: &[(NodeId, Statement)]) -> Result<(), NotFormed> {
    if let Some(node) = said.iter().flat_map(|(_, statement)| &statement.living).min() {
        return Err(NotFormed::Lives { node: *node });
    }
    if said.iter().all(|(_, statement)| statement.new_group) {
        return Ok(());
    }
    let is_first = said.iter().all(|(_, statement)| statement.remembers == Remembers::Fresh);
    if is_first {
        return Ok(());
    }
    // A node that was told to already is not the reason.
    let untold = || said.iter().filter(|(_, statement)| !statement.new_group);
    let found = untold().find_map(|(node, statement)| reason(*node, statement));
    let any = untold().next().map_or(0, |(node, _)| node.get());
    Err(found.unwrap_or(NotFormed::NotTold { node: any }))
}

/// Why this node does not form the group by itself.
pub(crate) fn reason(node: NodeId, statement: &Statement) -> Option<NotFormed> {
    let node = node.get();
    match &statement.remembers {
        Remembers::Fresh => None,
        Remembers::Nothing => Some(NotFormed::NoState { node }),
        Remembers::Log { records } => Some(NotFormed::HasLog { node, records: *records }),
        Remembers::View { view, members, end } => {
            let how = match end {
                Some(MembershipEnd::Left) => "left it",
                Some(MembershipEnd::Last) => "ended it as the last member",
                Some(MembershipEnd::Halted) => "was out of it",
                Some(MembershipEnd::Failed) => "ended without leaving it",
                None => "ended without a word",
            };
            Some(NotFormed::WasMember { node, view: *view, members: members.clone(), how })
        }
    }
}

/// Ids as people list them.
pub(crate) struct List<'l>(pub(crate) &'l [u32]);

impl fmt::Display for List<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, id) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(out, "{comma}{id}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(remembers: Remembers, new_group: bool) -> Statement {
        Statement { remembers, new_group, living: Vec::new() }
    }

    fn past() -> Remembers {
        Remembers::View { view: 3, members: vec![1, 2], end: Some(MembershipEnd::Left) }
    }

    fn verdict(statements: Vec<Statement>) -> Result<(), NotFormed> {
        judge(&(0..).map(NodeId).zip(statements).collect::<Vec<_>>())
    }

    #[test]
    fn a_group_is_formed_once_by_itself_and_again_where_all_are_told() {
        use super::{Remembers::Fresh, Remembers::Nothing};
        assert_eq!(verdict(vec![said(Fresh, false), said(Fresh, false)]), Ok(()));
        assert_eq!(verdict(vec![said(Fresh, false), said(Fresh, true)]), Ok(()));
        assert_eq!(verdict(vec![said(past(), true), said(Nothing, true)]), Ok(()));
        let left = verdict(vec![said(Fresh, false), said(past(), false)])
            .expect_err("it goes on somewhere");
        assert!(matches!(left, NotFormed::WasMember { node: 1, view: 3, .. }), "{left}");
        let memory = verdict(vec![said(Nothing, false), said(Fresh, false)])
            .expect_err("it may have been one");
        assert!(matches!(memory, NotFormed::NoState { node: 0 }), "{memory}");
        let half =
            verdict(vec![said(Fresh, false), said(past(), true)]).expect_err("one is not told");
        assert!(matches!(half, NotFormed::NotTold { node: 0 }), "{half}");
    }

    #[test]
    fn a_live_member_forbids_it_whatever_was_told() {
        let sees = Statement { living: vec![2], ..said(Remembers::Fresh, true) };
        assert_eq!(
            verdict(vec![said(Remembers::Fresh, true), sees]),
            Err(NotFormed::Lives { node: 2 })
        );
    }

    #[test]
    fn every_reason_is_one_line_that_says_what_to_do() {
        let reasons = [
            NotFormed::Lives { node: 2 },
            NotFormed::WasMember { node: 1, view: 3, members: vec![0, 1], how: "left it" },
            NotFormed::NoState { node: 0 },
            NotFormed::HasLog { node: 1, records: 7 },
            NotFormed::NotTold { node: 0 },
        ];
        for reason in reasons {
            let text = reason.to_string();
            assert!(text.contains("; ") && !text.contains('\n') && !text.contains("  "), "{text}");
        }
    }
}
