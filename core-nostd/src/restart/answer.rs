//! The state that a restarting node has on disk.
//!
//! Requirement: DUR-6.

use crate::ids::{DurableCount, NodeId, ViewId};

/// A view as recorded by a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct KnownView<'a> {
    /// Its id.
    pub id: ViewId,
    /// Members in rank order.
    pub members: &'a [NodeId],
}

/// The ballot of the leader to which a promise was made. Later promises have greater ballots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PromiseBallot {
    /// Zero in a running view; in a restart, the number of the attempt, starting at one.
    pub attempt: u32,
    /// Ballot of the leader in a running view; node id of the leader in a restart.
    pub leader: u32,
}

/// A node's promise to move to a view: its echo of a sealed list, or its part in a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Promise<'a> {
    /// Ballot of the leader.
    pub ballot: PromiseBallot,
    /// View that was promised. Its id is one above the id of the view that it ends.
    pub next: KnownView<'a>,
    /// End of each logged subgroup's log at the time of the promise; `None` if the node has no log
    /// of the subgroup.
    pub ends: &'a [Option<DurableCount>],
}

/// The end of a log. Of two logs of members of the same view, the one with the greater end has
/// everything that the other has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogEnd {
    /// View of the log's last record.
    pub view: ViewId,
    /// Number of messages before the end, since the group began.
    pub end: DurableCount,
}

/// A node's log of a subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogState<'a> {
    /// First record; a snapshot replaces the earlier records.
    pub first: DurableCount,
    /// End of the log.
    pub end: LogEnd,
    /// Damaged records, as ordered ranges: each from its first record up to, but excluding, its
    /// end.
    pub damaged: &'a [(DurableCount, DurableCount)],
    /// Notes that the log's owner stored about the log separately.
    pub note: LogNote,
}

/// The notes that a log's owner stored with its promises. They are lower bounds, which may lag.
///
/// A disk may come back changed: lost, emptied, shortened, damaged, or as an older copy. The log
/// itself cannot reveal such a change. All fields are zero if nothing was noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogNote {
    /// Whether the note refers to a log other than the present one.
    pub is_of_another: bool,
    /// Number of messages before the log's end, according to the note.
    pub end: DurableCount,
    /// Number of messages that, according to the rows of the decided view, were durable at a
    /// majority.
    pub majority: DurableCount,
    /// Number of messages that, according to those rows, were durable at all of the view's members
    /// in the subgroup. Zero until every member has published a count.
    pub everywhere: DurableCount,
}

impl LogState<'_> {
    /// Returns whether the log is not the one that its owner had: it is a different log, or it ends
    /// earlier.
    fn is_lost(&self) -> bool {
        self.note.is_of_another || self.end.end < self.note.end
    }

    /// Returns the end of the intact records that begin at `from`, or `None` if that record is
    /// missing or damaged.
    pub(super) fn intact_from(&self, from: DurableCount) -> Option<DurableCount> {
        if from < self.first || from >= self.end.end {
            return None;
        }
        let next = self.damaged.iter().find(|run| run.1 > from);
        match next {
            Some(run) if run.0 <= from => None,
            Some(run) => Some(run.0.min(self.end.end)),
            None => Some(self.end.end),
        }
    }
}

/// The state that a restarting node has on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Answer<'a> {
    /// Answering node.
    pub node: NodeId,
    /// Newest view that the node knows to be decided.
    pub decided: Option<KnownView<'a>>,
    /// Latest promise of the node.
    pub promise: Option<Promise<'a>>,
    /// Latest ballot of a restart in which the node took part. The node makes no promise under a
    /// lower ballot.
    pub heard: PromiseBallot,
    /// The node's log of each logged subgroup, or `None`. If a joining node has not received the
    /// subgroup's state completely, its log counts as `None`.
    pub logs: &'a [Option<LogState<'a>>],
    /// Newest view, among those that the node was in, that an operator forced to begin with less
    /// than a majority.
    pub with_less: Option<ViewId>,
}

impl<'a> Answer<'a> {
    /// Returns whether the node has nothing of the group: its folder is empty. It then counts in no
    /// majority, whatever its id (DUR-7).
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.decided.is_none() && self.logs.iter().all(Option::is_none)
    }

    /// Returns whether one of the node's logs is not the one that it had.
    pub(super) fn has_lost_log(&self) -> bool {
        self.logs.iter().flatten().any(LogState::is_lost)
    }

    /// Returns whether the node took part in an attempt to restart, up to its promise. Its logs are
    /// then those of the attempt, and may end before what the view had shown of them.
    pub(super) fn has_promised_restart(&self) -> bool {
        self.promise.is_some_and(|promise| promise.ballot.attempt > 0)
    }

    /// Returns the node's log of a logged subgroup.
    pub(super) fn log(&self, subgroup: usize) -> Option<&LogState<'a>> {
        self.logs.get(subgroup)?.as_ref()
    }

    /// Returns the end of a subgroup's log according to the node's promise of a view.
    pub(super) fn promised_end(
        &self,
        promise: &Promise<'_>,
        subgroup: usize,
    ) -> Option<DurableCount> {
        let own = self.promise.filter(|own| own.is_same_as(promise))?;
        *own.ends.get(subgroup)?
    }
}

impl Promise<'_> {
    /// Returns whether two promises belong to the same proposal. Their log ends may differ, because
    /// each node knows only its own.
    fn is_same_as(&self, other: &Promise<'_>) -> bool {
        self.ballot == other.ballot && self.next.id == other.next.id
    }
}
