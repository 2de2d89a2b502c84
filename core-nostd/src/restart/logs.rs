//! Choice of a subgroup's log, and treatment of its damaged records.
//!
//! Requirement: DUR-6.

use super::answer::{Answer, KnownView, LogEnd, LogState};
use super::verdict::{Plan, Restart};
use crate::ids::{DurableCount, NodeId};

/// The log of a subgroup with which a group continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TakenLog {
    /// Node that has the log.
    pub node: NodeId,
    /// End at which the log is taken. The node's own log may extend past this end: see
    /// [`Restart::cut_of`].
    pub end: LogEnd,
}

impl<'a> Restart<'a> {
    /// Returns the log of a subgroup to be taken: the log with the highest end, or `None` if no
    /// member of the base has one. With less than a majority, a log that is not its owner's
    /// original comes last.
    ///
    /// # Errors
    /// This record is damaged in every log that was examined, but a node that did not answer may
    /// have it.
    pub fn log_of(
        &self,
        plan: &Plan<'a>,
        subgroup: usize,
    ) -> Result<Option<TakenLog>, DurableCount> {
        let limit = self.limit_of(plan, subgroup);
        let mut taken: Option<(TakenLog, &LogState<'a>)> = None;
        // bound: the answers, one per node
        for (answer, log) in self.logs_of(plan, subgroup) {
            let end = LogEnd { end: log.end.end.min(limit), ..log.end };
            let rank = (!log.note.is_of_another, end);
            if taken.is_none_or(|(taken, best)| rank > (!best.note.is_of_another, taken.end)) {
                taken = Some((TakenLog { node: answer.node, end }, log));
            }
        }
        let Some((mut taken, log)) = taken else { return Ok(None) };
        if let Some(lost) = self.first_lost(plan, subgroup, log, taken.end.end) {
            if !self.may_cut(plan, subgroup, lost) {
                return Err(lost);
            }
            taken.end.end = lost;
        }
        Ok(Some(taken))
    }

    /// Returns the position at which a participant's log must be cut because it extends past the
    /// log that is taken. A participant without a whole log may have to cut even earlier, where its
    /// view ended.
    #[must_use]
    pub fn cut_of(&self, taken: &TakenLog, node: NodeId, subgroup: usize) -> Option<DurableCount> {
        let own = self.answer_of(node)?.log(subgroup)?.end;
        if own.end > taken.end.end { Some(taken.end.end) } else { None }
    }

    /// Returns a node with an intact copy of a record in the log that is taken, and the end of its
    /// intact records from there.
    #[must_use]
    pub fn has_intact(
        &self,
        plan: &Plan<'a>,
        subgroup: usize,
        sequence: DurableCount,
    ) -> Option<(NodeId, DurableCount)> {
        let logs = self.logs_of(plan, subgroup);
        let intact = |(answer, log): (&Answer<'_>, &LogState<'_>)| {
            Some((answer.node, log.intact_from(sequence)?))
        };
        logs.filter_map(intact).max_by_key(|(_, up_to)| *up_to)
    }

    /// Returns the whole logs of the subgroup's members in the base. Other logs may contain more
    /// than the previous view ended with, and are never needed.
    fn logs_of(
        &self,
        plan: &Plan<'a>,
        subgroup: usize,
    ) -> impl Iterator<Item = (&'a Answer<'a>, &'a LogState<'a>)> {
        let (base, restart) = (plan.base, *self);
        let count = self.answers().iter().filter(move |answer| {
            restart.belongs(answer.node, subgroup)
                && base.members.contains(&answer.node)
                && restart.has_whole_logs(answer.node, base)
        });
        count.filter_map(move |answer| Some((answer, answer.log(subgroup)?)))
    }

    /// Returns the number of a subgroup's messages that the base showed as durable at a majority.
    /// The log that is taken must contain them.
    pub(super) fn durable_at_majority(&self, base: KnownView<'a>, subgroup: usize) -> DurableCount {
        let logs = self.answers_in(base).filter_map(|answer| answer.log(subgroup));
        logs.map(|log| log.note.majority).max().unwrap_or_default()
    }

    /// Returns the end of the log under the adopted view. A node that promised the view knows it if
    /// it logs the subgroup.
    fn limit_of(&self, plan: &Plan<'a>, subgroup: usize) -> DurableCount {
        let Some(promise) = plan.adopted else { return DurableCount(u64::MAX) };
        let ends = self.answers().iter().map(|answer| answer.promised_end(&promise, subgroup));
        ends.flatten().max().unwrap_or(DurableCount(u64::MAX))
    }

    /// Returns the first record of a log, before `end`, that no member of the base has intact.
    fn first_lost(
        &self,
        plan: &Plan<'a>,
        subgroup: usize,
        log: &LogState<'a>,
        end: DurableCount,
    ) -> Option<DurableCount> {
        // bound: the damaged runs of a log
        for run in log.damaged.iter().filter(|run| run.0 < end) {
            let (mut at, run_end) = (run.0, run.1.min(end));
            // bound: the damaged ranges of all logs, plus the logs: each turn reaches the end of a
            // further intact range of some log
            while at < run_end {
                match self.has_intact(plan, subgroup, at) {
                    Some((_, up_to)) if up_to > at => at = up_to,
                    _ => return Some(at),
                }
            }
        }
        None
    }

    /// Returns whether a record that no node has intact may be dropped together with all later
    /// ones: at least half of the members have a log that ends before it, so it was never durable
    /// at a majority. Damaged records in such a log do not matter, because an intact record or mark
    /// follows them and shows where the log ends. If less than a majority is enough, the record may
    /// always be dropped.
    fn may_cut(&self, plan: &Plan<'a>, subgroup: usize, sequence: DurableCount) -> bool {
        if self.is_with_less() {
            return true;
        }
        let (mut members, mut lacking) = (0_usize, 0_usize);
        let lacks = |log: &LogState<'_>| log.end.end <= sequence;
        // bound: the members of the subgroup
        for node in self.members_of(subgroup).filter(|node| plan.base.members.contains(node)) {
            members = members.saturating_add(1);
            let log = self.answer_of(node).and_then(|answer| answer.log(subgroup));
            lacking = lacking.saturating_add(usize::from(log.is_some_and(lacks)));
        }
        lacking.saturating_mul(2) >= members
    }
}
