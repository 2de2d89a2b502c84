//! What a node that restarts has on disk.
//!
//! Requirement: DUR-6.

use crate::ids::{DurableCount, NodeId, ViewId};

/// A view as a node remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct KnownView<'a> {
    /// Its id.
    pub id: ViewId,
    /// Its members, in rank order.
    pub members: &'a [NodeId],
}

/// Under which leader something was promised. A later promise has a greater one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PromiseBallot {
    /// Zero in a view that was going on; from one on, the attempt of a restart.
    pub attempt: u32,
    /// Which leader: the ballot of a view's, the node of a restart's.
    pub leader: u32,
}

/// A view that a node promised to go to: its echo of a sealed list, or its part in a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Promise<'a> {
    /// Under which leader.
    pub ballot: PromiseBallot,
    /// The view: its id is one above that of the view that it ends.
    pub next: KnownView<'a>,
    /// For each logged subgroup where its log ends then; nothing where the node has no log of it.
    pub ends: &'a [Option<DurableCount>],
}

/// Where a log ends. Of two logs of members of one view, the greater one has all that the other
/// has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogEnd {
    /// The view of its last record.
    pub view: ViewId,
    /// How many messages come before its end, since the group began.
    pub end: DurableCount,
}

/// A log of a subgroup, as a node has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogState<'a> {
    /// Its first record; a snapshot stands for those before.
    pub first: DurableCount,
    /// Where it ends.
    pub end: LogEnd,
    /// Records of it that are damaged: runs, in order, each from its first record up to the one
    /// behind its last.
    pub damaged: &'a [(DurableCount, DurableCount)],
    /// What its owner noted of it, in another place.
    pub note: LogNote,
}

/// What the owner of a log noted of it beside its promises: lower bounds, which may be behind.
///
/// A disk may come back other than it was: lost, emptied, shortened, damaged, or as an older copy.
/// The log alone does not tell. All zero where nothing was noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogNote {
    /// The note is of another log than the one that is there.
    pub is_of_another: bool,
    /// How many messages came before the log's end.
    pub end: DurableCount,
    /// How many messages the rows of the decided view showed to be durable with a majority.
    pub majority: DurableCount,
    /// How many they showed to be durable with all of the view's members in the subgroup. Zero
    /// until all have shown one.
    pub everywhere: DurableCount,
}

impl LogState<'_> {
    /// Whether it is not the log that its owner had: another one, or one that ends before it did.
    fn is_lost(&self) -> bool {
        self.note.is_of_another || self.end.end < self.note.end
    }

    /// Up to where it has intact records, from one on; nothing if it does not have that one.
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

/// What a node that restarts has on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Answer<'a> {
    /// Who answers.
    pub node: NodeId,
    /// The newest view that it knows to be decided.
    pub decided: Option<KnownView<'a>>,
    /// Its latest promise.
    pub promise: Option<Promise<'a>>,
    /// The latest ballot of a restart that it took part in. It promises nothing under a lesser one.
    pub heard: PromiseBallot,
    /// Its log of each logged subgroup, nothing where it has none: the state of a joining node that
    /// was not handed over whole is none.
    pub logs: &'a [Option<LogState<'a>>],
    /// The newest view that was begun with less than a majority because somebody said so, as far as
    /// the node was in it.
    pub with_less: Option<ViewId>,
}

impl<'a> Answer<'a> {
    /// Whether it has nothing of the group: its folder is empty. It counts in no majority, whatever
    /// its id (DUR-7).
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.decided.is_none() && self.logs.iter().all(Option::is_none)
    }

    /// Whether one of its logs is not the one that it had.
    pub(super) fn has_lost_log(&self) -> bool {
        self.logs.iter().flatten().any(LogState::is_lost)
    }

    /// Whether it took part in an attempt to restart up to its promise. Its logs are those of the
    /// attempt since, and may end before what the view had shown of them.
    pub(super) fn has_promised_restart(&self) -> bool {
        self.promise.is_some_and(|promise| promise.ballot.attempt > 0)
    }

    /// Its log of a logged subgroup.
    pub(super) fn log(&self, subgroup: usize) -> Option<&LogState<'a>> {
        self.logs.get(subgroup)?.as_ref()
    }

    /// Where its promise of a view ends a subgroup's log.
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
    /// Whether two promises are of one proposal. What they say of logs may differ: each node knows
    /// its own.
    fn is_same_as(&self, other: &Promise<'_>) -> bool {
        self.ballot == other.ballot && self.next.id == other.next.id
    }
}
