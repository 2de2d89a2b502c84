//! Decides whether the initial nodes may form the group (VIE-12).
//!
//! Forming a group again needs a decision, because the group that was formed before may still be
//! running somewhere. So every initial node states what it remembers when the nodes meet, and all
//! of them reach the same verdict. A group is formed if no node has ever been a member of it and
//! each can record its membership, or if each has been told to form a new group. In any case, a
//! group is not formed while a member process is known to be running, which can be detected over
//! shared memory.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tramontane_core::ids::NodeId;

use crate::group::state::last_membership::{LastMembership, MembershipEnd};

/// Options for a process that takes part in forming its group.
#[derive(Clone, Debug, Default)]
pub struct Forming {
    /// The folder in which this node records its membership; the description's folder if `None`.
    /// Without a folder, a node on a network forms a group only if it is told to form a new one.
    pub state: Option<PathBuf>,
    /// Forms a new group, regardless of any earlier one. All initial nodes must set this. An
    /// operator makes this decision, and only once, because two groups with the same name may run
    /// if members of the earlier one are merely unreachable. If the group turns out to be running,
    /// the node still joins it.
    pub new_group: bool,
    /// Makes the process a member from the first view on or not at all: if a group of this name is
    /// already running, that is an error. Intended for groups that serve a single task. All nodes
    /// of the description must be initial nodes.
    pub first_view_only: bool,
    /// Restarts a logged group with the nodes that are present. Anything that only missing nodes
    /// have is lost. An operator makes this decision, only once and on one node, if the missing
    /// nodes will never return.
    pub with_less: bool,
    /// Called with the reason why this node waits: first after a few seconds, and then every few
    /// seconds.
    pub told: Option<fn(&Waiting)>,
}

/// The reason why a node waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// Some initial nodes are missing.
    Forming {
        /// Their ids.
        missing: Vec<u32>,
        /// The reason why this node would not form the group even if all initial nodes were
        /// present.
        but: Option<NotFormed>,
    },
    /// There is no running member, and this node may not form the group.
    Member {
        /// The nodes that may form the group.
        initial: Vec<u32>,
        /// The reason why these nodes do not form the group, as far as this node knows.
        but: Option<NotFormed>,
    },
    /// The group cannot continue from its logs, because required nodes are missing.
    Restart(RestartWaiting),
    /// The process at a node's address has not proved that it has the key.
    Stranger {
        /// The node.
        node: u32,
        /// The address, and the answer received from it.
        answer: String,
    },
    /// This node has no data of the group, and waits for the nodes that have its logs.
    Others {
        /// A node that has data of the group, and waits for the others.
        node: u32,
    },
}

/// The nodes that a restarting group waits for, and the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestartWaiting {
    /// The view whose members are awaited.
    pub view: u64,
    /// The missing nodes, some of which are needed. Empty if all are present but cannot continue
    /// yet.
    pub missing: Vec<u32>,
    /// The reason why the missing nodes are needed, or the last error.
    pub why: String,
}

impl fmt::Display for RestartWaiting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { view, missing, why } = self;
        match (missing.is_empty(), why.is_empty()) {
            (true, true) => return out.write_str("restarting; waiting for the other nodes"),
            (true, false) if *view == 0 => return write!(out, "restarting; {why}"),
            (true, false) => return write!(out, "restarting view {view}; {why}"),
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
                write!(out, "waiting for {} or for a running member: {but}", List(missing))
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
                write!(out, "waiting for {node}: the process at {answer}")
            }
            Self::Others { node } => {
                write!(
                    out,
                    "waiting for {node}, which is restarting the group from its log; {}",
                    others(*node)
                )
            }
        }
    }
}

/// Returns the advice for a node without a log while another node is restarting.
pub(crate) fn others(node: u32) -> String {
    format!(
        "this node has no data of the group; start the other nodes that have some, restore this \
         node's folders, or, if those are lost for good, start node {node} again with the option \
         restart-with-less"
    )
}

/// The statement that a node makes when the initial nodes meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Statement {
    pub(crate) remembers: Remembers,
    pub(crate) new_group: bool,
    /// Running members that do not take part, as far as this node can see them.
    pub(crate) living: Vec<u32>,
}

/// A node's knowledge of the group from earlier incarnations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Remembers {
    /// Nothing, because there is no folder for the node's membership.
    Nothing,
    /// Never a member.
    Fresh,
    /// The node was a member of this view.
    View { view: u64, members: Vec<u32>, end: Option<MembershipEnd> },
    /// The node has logs with this number of records, but no record of its membership.
    Log { records: u64 },
}

impl Remembers {
    /// Derives the knowledge from a node's membership record and the number of records in its logs.
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

/// The reason why the initial nodes do not form their group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotFormed {
    /// A member process of the group is running.
    #[error(
        "node {node} is still a member of the group, but does not answer; let it continue, or stop \
         its process before you form the group again"
    )]
    Lives {
        /// The node.
        node: u32,
    },
    /// A node was already a member of the group.
    #[error(
        "node {node} was already a member of this group (view {view}, members {}), and {how}; \
         start a member that still has the group's state",
        List(members)
    )]
    WasMember {
        /// The node.
        node: u32,
        /// The newest view that contained the node.
        view: u64,
        /// Its members.
        members: Vec<u32>,
        /// How the node's membership ended.
        how: &'static str,
    },
    /// A node has a log of the group, but has lost its membership record.
    #[error(
        "node {node} has a log of {records} records of this group, but no record of its \
         membership; start a member that still has one, or start the node with the longest log \
         with the option restart-with-less"
    )]
    HasLog {
        /// The node.
        node: u32,
        /// The number of records.
        records: u64,
    },
    /// A node has no folder for its membership.
    #[error(
        "node {node} has no record of whether it was a member before; give each node a log or a \
         state folder"
    )]
    NoState {
        /// The node.
        node: u32,
    },
    /// A node has not been told to form a new group.
    #[error(
        "node {node} was started without the option new-group; start either all initial nodes with \
         this option, or none"
    )]
    NotTold {
        /// The node.
        node: u32,
    },
}

impl NotFormed {
    /// Returns the remaining option after the nodes have met without success. By then, no known
    /// part of the group is running, and nothing is logged.
    pub(crate) const fn last_resort(&self) -> &'static str {
        match self {
            Self::WasMember { .. } | Self::NoState { .. } => {
                ", or, if no such member exists any longer, form a new group: start every initial \
                 node with the option new-group (existing logs are kept)"
            }
            Self::Lives { .. } | Self::HasLog { .. } | Self::NotTold { .. } => "",
        }
    }
}

/// Returns the verdict of all initial nodes, which is the same at each of them.
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
    // A node that has been told to form a new group is not the reason.
    let untold = || said.iter().filter(|(_, statement)| !statement.new_group);
    let found = untold().find_map(|(node, statement)| reason(*node, statement));
    let any = untold().next().map_or(0, |(node, _)| node.get());
    Err(found.unwrap_or(NotFormed::NotTold { node: any }))
}

/// Returns the reason why this node does not form the group of its own accord, if there is one.
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
                Some(MembershipEnd::Halted) => "had been removed from it, or had lost the majority",
                Some(MembershipEnd::Failed) => "ended without leaving it",
                None => "ended for an unknown reason",
            };
            Some(NotFormed::WasMember { node, view: *view, members: members.clone(), how })
        }
    }
}

/// Formats ids as a readable list.
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
    fn group_reforms_only_if_all_nodes_request_it() {
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
    fn live_member_prevents_forming_group() {
        let sees = Statement { living: vec![2], ..said(Remembers::Fresh, true) };
        assert_eq!(
            verdict(vec![said(Remembers::Fresh, true), sees]),
            Err(NotFormed::Lives { node: 2 })
        );
    }

    #[test]
    fn every_forming_refusal_names_a_remedy() {
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
