//! What is waited for, or what is to be done.
//!
//! Requirements: DUR-6, DUR-12.

use super::answer::{Answer, KnownView, Promise};
use crate::ids::{DurableCount, NodeId, ViewId};

/// The nodes that answered so far, and what the group logs.
#[derive(Clone, Copy, Debug)]
pub struct Restart<'a> {
    answers: &'a [Answer<'a>],
    /// Of each logged subgroup the nodes that may belong to it: those of them that are in a view
    /// are its members there.
    subgroups: &'a [&'a [NodeId]],
    /// Whether those that answer are enough.
    with_less: bool,
}

/// What the answers come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Nobody that answers was in a view: there is no group yet.
    NoGroup,
    /// More nodes have to answer.
    Wait(Wait<'a>),
    /// The group can go on.
    Go(Plan<'a>),
}

/// What is waited for; [`Restart::missing`] has the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait<'a> {
    /// Members of this view.
    pub view: KnownView<'a>,
    /// Whether it is to be adopted, and is not known to be decided.
    pub is_adopted: bool,
    /// How many of them, and why.
    pub want: Want,
}

/// Why more nodes have to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Want {
    /// Those that answer are no majority of the view.
    Majority,
    /// They are none of this logged subgroup's members in it.
    SubgroupMajority(usize),
    /// None of this logged subgroup's members that answer is known to have all that the view before
    /// ended with.
    WholeLog(usize),
    /// A record of this logged subgroup is damaged at all that have it, and may have been durable
    /// at a majority.
    Record(usize, DurableCount),
    /// So many messages of this logged subgroup were durable at a majority, and no log that counts
    /// has them.
    Durable(usize, DurableCount),
    /// This node alone knows of the view. Most members of the view before, as the others know it,
    /// are here and never went on from it.
    Support(NodeId),
}

/// How a group goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan<'a> {
    /// The newest view that is known to be decided: the next one follows it.
    pub base: KnownView<'a>,
    /// The promise that is adopted, if one was found. Without one, the members of the base that
    /// answer are the next view.
    pub adopted: Option<Promise<'a>>,
    /// A number for this attempt, above all that were made so far.
    pub attempt: u32,
}

impl Plan<'_> {
    /// The id of the view that it leads to.
    #[must_use]
    pub const fn next_id(&self) -> ViewId {
        self.base.id.next()
    }
}

impl<'a> Restart<'a> {
    /// Over the answers, one a node, and for each logged subgroup the nodes that may belong to it.
    #[must_use]
    pub const fn new(answers: &'a [Answer<'a>], subgroups: &'a [&'a [NodeId]]) -> Self {
        Self { answers, subgroups, with_less: false }
    }

    /// The same where the nodes that answer have to be enough: what only others have is given up.
    /// For an operator who knows that they never come back (DUR-7).
    #[must_use]
    pub const fn with_less(self) -> Self {
        Self { with_less: true, ..self }
    }

    /// What is to be done, or waited for.
    #[must_use]
    pub fn verdict(&self) -> Verdict<'a> {
        let Some(base) = self.base() else { return Verdict::NoGroup };
        if let Some(node) = self.unsupported(base) {
            let want = Want::Support(node);
            return Verdict::Wait(Wait { view: base, is_adopted: false, want });
        }
        let adopted = self.latest_promise(base);
        let views = [(Some(base), false), (adopted.map(|promise| promise.next), true)];
        // bound: two views
        for (view, is_adopted) in views {
            let Some(view) = view else { continue };
            if let Some(want) = self.lacks_majority(view) {
                return Verdict::Wait(Wait { view, is_adopted, want });
            }
        }
        if let Some(want) = self.lacks_whole_log(base) {
            return Verdict::Wait(Wait { view: base, is_adopted: false, want });
        }
        let promised = self.answers.iter().filter_map(|answer| answer.promise);
        let promised = promised.map(|promise| promise.ballot.attempt).max().unwrap_or(0);
        let heard = self.answers.iter().map(|answer| answer.heard.attempt).max().unwrap_or(0);
        let last = promised.max(heard);
        let plan = Plan { base, adopted, attempt: last.saturating_add(1) };
        let mut subgroup = 0;
        // bound: the logged subgroups
        while subgroup < self.subgroups.len() {
            if let Some(want) = self.lacks_records(&plan, subgroup) {
                return Verdict::Wait(Wait { view: base, is_adopted: false, want });
            }
            subgroup = subgroup.saturating_add(1);
        }
        Verdict::Go(plan)
    }

    /// The nodes whose answers would help: members that are waited for, and have not answered or
    /// have nothing of the group. None, where all are there and what is wanted is lost.
    pub fn missing(&self, wait: Wait<'a>) -> impl Iterator<Item = NodeId> {
        let subgroup = match wait.want {
            Want::Majority | Want::Support(_) => None,
            Want::SubgroupMajority(subgroup)
            | Want::WholeLog(subgroup)
            | Want::Record(subgroup, _)
            | Want::Durable(subgroup, _) => Some(subgroup),
        };
        wait.view.members.iter().copied().filter(move |node| {
            let is_here = self.answers.iter().any(|known| known.node == *node && !known.is_new());
            self.is_concerned(*node, subgroup) && !is_here
        })
    }

    /// The members that are waited for and are here, and count in no majority: one of their logs is
    /// not the one that they had, or what they know is older than what they had shown to others.
    pub fn uncounted(&self, wait: Wait<'a>) -> impl Iterator<Item = NodeId> {
        let old = self.answers.iter().filter(|answer| !answer.is_new());
        let members = old.map(|answer| answer.node);
        let members = members.filter(move |node| wait.view.members.contains(node));
        members.filter(|node| self.answer_of(*node).is_none())
    }

    /// The members of the next view, in rank order.
    pub fn next_members(&self, plan: &Plan<'a>) -> impl Iterator<Item = NodeId> {
        let (members, all) = match plan.adopted {
            Some(promise) => (promise.next.members, true),
            None => (plan.base.members, false),
        };
        members.iter().copied().filter(move |node| all || self.answer_of(*node).is_some())
    }

    /// The nodes that have to promise the next view before it is decided: the members of the base
    /// that answer, and those of an adopted view.
    pub fn participants(&self, plan: &Plan<'a>) -> impl Iterator<Item = NodeId> {
        let plan = *plan;
        let old = self.answers.iter().filter(|answer| self.counts(answer));
        old.map(|answer| answer.node).filter(move |node| plan.concerns(*node))
    }

    /// The newest view that anybody knows to be decided.
    fn base(&self) -> Option<KnownView<'a>> {
        self.answers.iter().filter_map(|answer| answer.decided).max_by_key(|view| view.id)
    }

    /// The node that knows of the base, if it is the only one, and the base cannot have been
    /// decided: most members of the view before it answer, as the others know that view, and none
    /// of them has promised to leave it. A view that somebody began with less needs no majority.
    fn unsupported(&self, base: KnownView<'a>) -> Option<NodeId> {
        let mut knowing = self.answers_in(base);
        let claimant = knowing.next()?;
        let others = || self.answers.iter().filter(move |answer| answer.node != claimant.node);
        let before = others().filter_map(|answer| answer.decided).max_by_key(|view| view.id)?;
        let is_forced = claimant.with_less.is_some_and(|id| id > before.id);
        if before.id >= base.id || is_forced || self.with_less {
            return None;
        }
        let stays = |answer: &&Answer<'_>| {
            let is_there = answer.decided.is_some_and(|view| view.id == before.id);
            let has_left = answer.promise.is_some_and(|promise| promise.next.id > before.id);
            is_there && !has_left && before.members.contains(&answer.node)
        };
        let mut staying = 0_usize;
        // bound: the answers, one a node
        for _ in others().filter(stays) {
            staying = staying.saturating_add(1);
        }
        let most = staying.saturating_mul(2) > before.members.len();
        most.then_some(claimant.node)
    }

    /// The answers of those that know the base.
    pub(super) fn answers_in(&self, base: KnownView<'a>) -> impl Iterator<Item = &'a Answer<'a>> {
        let is_there =
            move |answer: &&Answer<'_>| answer.decided.is_some_and(|decided| decided.id == base.id);
        self.answers.iter().filter(is_there)
    }

    /// Whether a node counts: it has something of the group, its logs are those that it had, and it
    /// knows all that it had shown to others. With less, what there is has to be enough.
    fn counts(&self, answer: &Answer<'_>) -> bool {
        let is_as_it_was = || !answer.has_lost_log() && !self.is_outdated(answer);
        !answer.is_new() && (self.with_less || is_as_it_was())
    }

    /// Whether another node saw more of this one in the base than it has: its disk came back as it
    /// was before.
    fn is_outdated(&self, answer: &Answer<'_>) -> bool {
        let Some(base) = self.base() else { return false };
        let is_in_base = answer.decided.is_some_and(|decided| decided.id >= base.id);
        if !base.members.contains(&answer.node) || answer.has_promised_restart() {
            return false;
        }
        let mut subgroup = 0;
        // bound: the logged subgroups
        while subgroup < self.subgroups.len() {
            let of_subgroup = self.answers_in(base).filter_map(|other| other.log(subgroup));
            let shown = of_subgroup.map(|log| log.note.everywhere).max().unwrap_or_default();
            let has = answer.log(subgroup).map_or(DurableCount::ZERO, |log| log.end.end);
            let is_shown = shown > DurableCount::ZERO && self.belongs(answer.node, subgroup);
            if is_shown && (!is_in_base || has < shown) {
                return true;
            }
            subgroup = subgroup.saturating_add(1);
        }
        false
    }

    /// What is lacking of a subgroup's records.
    fn lacks_records(&self, plan: &Plan<'a>, subgroup: usize) -> Option<Want> {
        let taken = match self.log_of(plan, subgroup) {
            Ok(taken) => taken?,
            Err(sequence) => return Some(Want::Record(subgroup, sequence)),
        };
        let durable = self.durable_at_majority(plan.base, subgroup);
        let is_short = taken.end.end < durable && !self.with_less;
        is_short.then_some(Want::Durable(subgroup, durable))
    }

    /// The promise with the latest ballot that ends this view. One of a view without members, as
    /// earlier versions made where all left at once, is nothing to go on with; and what came before
    /// it was not decided.
    fn latest_promise(&self, base: KnownView<'a>) -> Option<Promise<'a>> {
        let promises = self.answers.iter().filter_map(|answer| answer.promise);
        let of_base = promises.filter(|promise| promise.next.id == base.id.next());
        let latest = of_base.max_by_key(|promise| promise.ballot);
        latest.filter(|promise| !promise.next.members.is_empty())
    }

    /// Of what a majority is missing in a view: of its members, or of a logged subgroup's members
    /// in it. A subgroup without members there needs none.
    fn lacks_majority(&self, view: KnownView<'a>) -> Option<Want> {
        if !self.has_majority(view, None) {
            return Some(Want::Majority);
        }
        let mut subgroup = 0;
        // bound: the logged subgroups
        while subgroup < self.subgroups.len() {
            if !self.has_majority(view, Some(subgroup)) {
                return Some(Want::SubgroupMajority(subgroup));
            }
            subgroup = subgroup.saturating_add(1);
        }
        None
    }

    /// A member of the view that counts, counts whatever it knows: had it delivered or promised
    /// anything in the view, it would say so.
    fn has_majority(&self, view: KnownView<'a>, subgroup: Option<usize>) -> bool {
        let (mut all, mut here) = (0_usize, 0_usize);
        // bound: the members of the view
        for node in view.members.iter().filter(|node| self.is_concerned(**node, subgroup)) {
            all = all.saturating_add(1);
            if self.answer_of(*node).is_some() {
                here = here.saturating_add(1);
            }
        }
        let enough = if self.with_less { here > 0 } else { here.saturating_mul(2) > all };
        enough || all == 0
    }

    /// The logged subgroup that has members in the base, of which none that answers is known to
    /// have a whole log.
    fn lacks_whole_log(&self, base: KnownView<'a>) -> Option<Want> {
        let mut subgroup = 0;
        // bound: the logged subgroups
        while subgroup < self.subgroups.len() {
            let mut members = base.members.iter().filter(|node| self.belongs(**node, subgroup));
            let is_empty = members.clone().next().is_none();
            if !is_empty && !members.any(|node| self.has_whole_logs(*node, base)) {
                return Some(Want::WholeLog(subgroup));
            }
            subgroup = subgroup.saturating_add(1);
        }
        None
    }

    /// Whether a node's logs have all that the view before the base ended with: it knows that the
    /// base is decided, or promised it. Another member of the base may have come to it and not have
    /// its state yet.
    pub(super) fn has_whole_logs(&self, node: NodeId, base: KnownView<'a>) -> bool {
        let Some(answer) = self.answer_of(node) else { return false };
        let is_there = answer.decided.is_some_and(|decided| decided.id >= base.id);
        let has_promised = answer.promise.is_some_and(|promise| promise.next.id == base.id);
        is_there || has_promised || self.with_less
    }

    fn is_concerned(&self, node: NodeId, subgroup: Option<usize>) -> bool {
        subgroup.is_none_or(|subgroup| self.belongs(node, subgroup))
    }

    pub(super) fn belongs(&self, node: NodeId, subgroup: usize) -> bool {
        self.subgroups.get(subgroup).is_some_and(|nodes| nodes.contains(&node))
    }

    /// The nodes that may belong to a logged subgroup.
    pub(super) fn members_of(&self, subgroup: usize) -> impl Iterator<Item = NodeId> {
        self.subgroups.get(subgroup).copied().unwrap_or_default().iter().copied()
    }

    /// What a node answered, if it counts.
    pub(super) fn answer_of(&self, node: NodeId) -> Option<&'a Answer<'a>> {
        self.answers.iter().find(|answer| answer.node == node && self.counts(answer))
    }

    pub(super) const fn answers(&self) -> &'a [Answer<'a>] {
        self.answers
    }

    pub(super) const fn is_with_less(&self) -> bool {
        self.with_less
    }
}

impl Plan<'_> {
    /// Whether a node is in the base, or in the view that is adopted.
    pub(super) fn concerns(&self, node: NodeId) -> bool {
        let is_next = self.adopted.is_some_and(|promise| promise.next.members.contains(&node));
        is_next || self.base.members.contains(&node)
    }
}
