//! Which log of a subgroup is taken, and what becomes of records that are damaged in it.
//!
//! Requirement: DUR-6.

use super::answer::{Answer, KnownView, LogEnd, LogState};
use super::verdict::{Plan, Restart};
use crate::ids::{DurableCount, NodeId};

/// The log of a subgroup that a group goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TakenLog {
    /// Who has it.
    pub node: NodeId,
    /// Where it ends. The node's own may end later: [`Restart::cut_of`].
    pub end: LogEnd,
}

impl<'a> Restart<'a> {
    /// The log of a subgroup that is taken: the one with the highest end. Nothing where no member
    /// of the base has one. With less, a log that is not the one that its owner had comes last.
    ///
    /// # Errors
    /// This record of it is damaged wherever it was found, and a node that did not answer may have
    /// it.
    pub fn log_of(
        &self,
        plan: &Plan<'a>,
        subgroup: usize,
    ) -> Result<Option<TakenLog>, DurableCount> {
        let limit = self.limit_of(plan, subgroup);
        let mut taken: Option<(TakenLog, &LogState<'a>)> = None;
        // bound: the answers, one a node
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

    /// Where a participant's log has to be cut, because it has more than the log that is taken. One
    /// without a whole log may have to be cut before that: where its view ended.
    #[must_use]
    pub fn cut_of(&self, taken: &TakenLog, node: NodeId, subgroup: usize) -> Option<DurableCount> {
        let own = self.answer_of(node)?.log(subgroup)?.end;
        if own.end > taken.end.end { Some(taken.end.end) } else { None }
    }

    /// Who has an intact copy of a record that is in the log that is taken, and up to which record.
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

    /// The whole logs of a subgroup's members in the base: what others have may be more than the
    /// view before ended with, and is never needed.
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

    /// How much of a subgroup's log the base had shown to be durable at a majority. The log that is
    /// taken has to have that.
    pub(super) fn durable_at_majority(&self, base: KnownView<'a>, subgroup: usize) -> DurableCount {
        let logs = self.answers_in(base).filter_map(|answer| answer.log(subgroup));
        logs.map(|log| log.note.majority).max().unwrap_or_default()
    }

    /// Where the view that is adopted ends the log. A node that promised it knows, if it logs the
    /// subgroup.
    fn limit_of(&self, plan: &Plan<'a>, subgroup: usize) -> DurableCount {
        let Some(promise) = plan.adopted else { return DurableCount(u64::MAX) };
        let ends = self.answers().iter().map(|answer| answer.promised_end(&promise, subgroup));
        ends.flatten().max().unwrap_or(DurableCount(u64::MAX))
    }

    /// The first record of a log, below a place, that no member of the base has intact.
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
            // Each turn gets to the end of an intact stretch of some log.
            // bound: the damaged runs of all logs, and the logs: each turn reaches the end of
            // another stretch that is intact
            while at < run_end {
                match self.has_intact(plan, subgroup, at) {
                    Some((_, up_to)) if up_to > at => at = up_to,
                    _ => return Some(at),
                }
            }
        }
        None
    }

    /// Whether a record that nobody has intact may go, with all behind it: half of the intact logs
    /// lack it, so it was never durable at a majority.
    fn may_cut(&self, plan: &Plan<'a>, subgroup: usize, sequence: DurableCount) -> bool {
        if self.is_with_less() {
            return true;
        }
        let (mut members, mut lacking) = (0_usize, 0_usize);
        let lacks = |log: &LogState<'_>| log.end.end <= sequence && log.damaged.is_empty();
        // bound: the members of the subgroup
        for node in self.members_of(subgroup).filter(|node| plan.base.members.contains(node)) {
            members = members.saturating_add(1);
            let log = self.answer_of(node).and_then(|answer| answer.log(subgroup));
            lacking = lacking.saturating_add(usize::from(log.is_some_and(lacks)));
        }
        lacking.saturating_mul(2) >= members
    }
}
