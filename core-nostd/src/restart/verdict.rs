//! The verdict of a restart: what is still missing, or what to do.
//!
//! Requirements: DUR-6, DUR-12.

use super::answer::{Answer, KnownView, Promise};
use crate::ids::{DurableCount, NodeId, ViewId};

/// The nodes that have answered so far, and the logged subgroups of the group.
#[derive(Clone, Copy, Debug)]
pub struct Restart<'a> {
    answers: &'a [Answer<'a>],
    /// Nodes that may belong to each logged subgroup. Those that are in a view are the subgroup's
    /// members in that view.
    subgroups: &'a [&'a [NodeId]],
    /// Whether the nodes that answer are enough, even if they are not a majority.
    with_less: bool,
}

/// The conclusion from the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// No answering node was in a view: there is no group yet.
    NoGroup,
    /// More nodes have to answer.
    Wait(Wait<'a>),
    /// The group can continue.
    Go(Plan<'a>),
}

/// The reason for waiting; [`Restart::missing`] returns the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait<'a> {
    /// View whose members are needed.
    pub view: KnownView<'a>,
    /// Whether that view is to be adopted but is not known to be decided.
    pub is_adopted: bool,
    /// Missing part.
    pub want: Want,
}

/// Reason why more nodes have to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Want {
    /// The answering nodes are not a majority of the view.
    Majority,
    /// The answering nodes are not a majority of this logged subgroup's members in the view.
    SubgroupMajority(usize),
    /// No answering member of this logged subgroup is known to have everything that the previous
    /// view ended with.
    WholeLog(usize),
    /// A record of this logged subgroup is damaged at all nodes that have it, but may have been
    /// durable at a majority.
    Record(usize, DurableCount),
    /// This many messages of this logged subgroup were durable at a majority, but no log that
    /// counts has them.
    Durable(usize, DurableCount),
    /// Only this node knows of the view. Most members of the previous view, as the other nodes know
    /// it, have answered and never continued from it.
    Support(NodeId),
}

/// The plan with which a group continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan<'a> {
    /// Newest view that is known to be decided; the next view follows it.
    pub base: KnownView<'a>,
    /// Promise to adopt, if one was found. Without one, the answering members of the base form the
    /// next view.
    pub adopted: Option<Promise<'a>>,
    /// Number of this attempt, above all earlier ones.
    pub attempt: u32,
}

impl Plan<'_> {
    /// Returns the id of the view that the plan leads to.
    #[must_use]
    pub const fn next_id(&self) -> ViewId {
        self.base.id.next()
    }
}

impl<'a> Restart<'a> {
    /// Creates a restart from the answers, one per node, and from the nodes that may belong to each
    /// logged subgroup.
    #[must_use]
    pub const fn new(answers: &'a [Answer<'a>], subgroups: &'a [&'a [NodeId]]) -> Self {
        Self { answers, subgroups, with_less: false }
    }

    /// Declares that the answering nodes must be enough: data that only other nodes have is given
    /// up. This is for an operator who knows that those nodes will never come back (DUR-7).
    #[must_use]
    pub const fn with_less(self) -> Self {
        Self { with_less: true, ..self }
    }

    /// Returns what to do, or what is still missing.
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

    /// Returns the nodes whose answers would help: needed members that have not answered or have
    /// nothing of the group. If there are none, all needed members have answered and the missing
    /// data is lost.
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

    /// Returns the needed members that have answered but count in no majority: one of their logs is
    /// not the one that they had, or they know less than they had shown to others.
    pub fn uncounted(&self, wait: Wait<'a>) -> impl Iterator<Item = NodeId> {
        let old = self.answers.iter().filter(|answer| !answer.is_new());
        let members = old.map(|answer| answer.node);
        let members = members.filter(move |node| wait.view.members.contains(node));
        members.filter(|node| self.answer_of(*node).is_none())
    }

    /// Returns the members of the next view, in rank order.
    pub fn next_members(&self, plan: &Plan<'a>) -> impl Iterator<Item = NodeId> {
        let (members, all) = match plan.adopted {
            Some(promise) => (promise.next.members, true),
            None => (plan.base.members, false),
        };
        members.iter().copied().filter(move |node| all || self.answer_of(*node).is_some())
    }

    /// Returns the nodes that must promise the next view before it is decided: the answering
    /// members of the base, and those of an adopted view.
    pub fn participants(&self, plan: &Plan<'a>) -> impl Iterator<Item = NodeId> {
        let plan = *plan;
        let old = self.answers.iter().filter(|answer| self.counts(answer));
        old.map(|answer| answer.node).filter(move |node| plan.concerns(*node))
    }

    /// Returns the newest view that any node knows to be decided.
    fn base(&self) -> Option<KnownView<'a>> {
        self.answers.iter().filter_map(|answer| answer.decided).max_by_key(|view| view.id)
    }

    /// Returns the node that knows of the base, if it is the only one and the base cannot have been
    /// decided: most members of the previous view, as the others know it, answer, and none of them
    /// has promised to leave it. A view that an operator forced to begin with less than a majority
    /// needs no majority.
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
        // bound: the answers, one per node
        for _ in others().filter(stays) {
            staying = staying.saturating_add(1);
        }
        let most = staying.saturating_mul(2) > before.members.len();
        most.then_some(claimant.node)
    }

    /// Returns the answers of the nodes that know the base.
    pub(super) fn answers_in(&self, base: KnownView<'a>) -> impl Iterator<Item = &'a Answer<'a>> {
        let is_there =
            move |answer: &&Answer<'_>| answer.decided.is_some_and(|decided| decided.id == base.id);
        self.answers.iter().filter(is_there)
    }

    /// Returns whether a node counts: it has data of the group, its logs are the ones that it had,
    /// and it knows everything that it had shown to others. If less than a majority is enough, the
    /// data found must be enough too.
    fn counts(&self, answer: &Answer<'_>) -> bool {
        let is_as_it_was = || !answer.has_lost_log() && !self.is_outdated(answer);
        !answer.is_new() && (self.with_less || is_as_it_was())
    }

    /// Returns whether another node had seen more of this node's data in the base than this node
    /// has now: its disk came back in an older state.
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

    /// Returns the records that a subgroup still lacks, as a reason to wait.
    fn lacks_records(&self, plan: &Plan<'a>, subgroup: usize) -> Option<Want> {
        let taken = match self.log_of(plan, subgroup) {
            Ok(taken) => taken?,
            Err(sequence) => return Some(Want::Record(subgroup, sequence)),
        };
        let durable = self.durable_at_majority(plan.base, subgroup);
        let is_short = taken.end.end < durable && !self.with_less;
        is_short.then_some(Want::Durable(subgroup, durable))
    }

    /// Returns the promise with the latest ballot that ends this view. Returns `None` if it is a
    /// promise of a view without members, which earlier versions made when all members left at
    /// once: such a view leaves nothing to continue with, and no promise with a lower ballot was
    /// decided.
    fn latest_promise(&self, base: KnownView<'a>) -> Option<Promise<'a>> {
        let promises = self.answers.iter().filter_map(|answer| answer.promise);
        let of_base = promises.filter(|promise| promise.next.id == base.id.next());
        let latest = of_base.max_by_key(|promise| promise.ballot);
        latest.filter(|promise| !promise.next.members.is_empty())
    }

    /// Returns the set of members that lacks a majority: the view's members, or a logged subgroup's
    /// members in the view. A subgroup without members in the view needs no majority.
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

    /// Returns whether enough of the view's members, or of a logged subgroup's members in it, have
    /// answered and count: a majority, or at least one if the nodes that answer are enough. Such a
    /// member need not know of the view: if it had delivered or promised anything in the view, its
    /// answer would say so.
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

    /// Returns a logged subgroup that has members in the base but none that is known to have a
    /// whole log.
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

    /// Returns whether a node's logs have everything that the view before the base ended with: the
    /// node knows that the base is decided, or promised it. Any other member of the base may have
    /// joined in it and may not have received its state yet.
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

    /// Returns the nodes that may belong to a logged subgroup.
    pub(super) fn members_of(&self, subgroup: usize) -> impl Iterator<Item = NodeId> {
        self.subgroups.get(subgroup).copied().unwrap_or_default().iter().copied()
    }

    /// Returns a node's answer if it counts.
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
    /// Returns whether a node is in the base or in the adopted view.
    pub(super) fn concerns(&self, node: NodeId) -> bool {
        let is_next = self.adopted.is_some_and(|promise| promise.next.members.contains(&node));
        is_next || self.base.members.contains(&node)
    }
}
