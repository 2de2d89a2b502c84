//! What is waited for, or what is to be done.
//!
//! Requirement: DUR-6.

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
    /// A record of this logged subgroup is damaged at all that have it, and others may have it.
    Record(usize, DurableCount),
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
        let decided = self.answers.iter().filter_map(|answer| answer.decided);
        let Some(base) = decided.max_by_key(|view| view.id) else { return Verdict::NoGroup };
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
            if let Err(sequence) = self.log_of(&plan, subgroup) {
                let want = Want::Record(subgroup, sequence);
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
            Want::Majority => None,
            Want::SubgroupMajority(subgroup)
            | Want::WholeLog(subgroup)
            | Want::Record(subgroup, _) => Some(subgroup),
        };
        wait.view.members.iter().copied().filter(move |node| {
            self.is_concerned(*node, subgroup) && self.answer_of(*node).is_none()
        })
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
        let old = self.answers.iter().filter(|answer| !answer.is_new());
        old.map(|answer| answer.node).filter(move |node| plan.concerns(*node))
    }

    /// The promise with the latest ballot that ends this view.
    fn latest_promise(&self, base: KnownView<'a>) -> Option<Promise<'a>> {
        let promises = self.answers.iter().filter_map(|answer| answer.promise);
        let of_base = promises.filter(|promise| promise.next.id == base.id.next());
        of_base.max_by_key(|promise| promise.ballot)
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

    /// A member of the view that answers counts, whatever it knows: had it delivered or promised
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

    /// What a node answered, if it has anything of the group.
    pub(super) fn answer_of(&self, node: NodeId) -> Option<&'a Answer<'a>> {
        self.answers.iter().find(|answer| answer.node == node && !answer.is_new())
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
