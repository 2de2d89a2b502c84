//! The leaders of groups, as members report them, and the nodes that a plan chose by their role.
//!
//! A plan cannot know the leaders in advance, because the system chooses them. So a step of the
//! plan picks a group's leader or follower while the plan runs, and the following steps apply to
//! this node.

use std::time::Duration;

use super::error::Ending;
use super::names::group_name;
use super::plan::{Deed, GroupRole};
use super::stage::Stage;

/// A member that reported itself leader, and its incarnation.
#[derive(Clone, Copy, Debug)]
struct Lead {
    start: (usize, u32),
    term: u64,
}

/// A node that was chosen for its role in a group.
#[derive(Clone, Copy, Debug)]
struct Choice {
    group: usize,
    node: usize,
}

/// The members' reports of leadership, and the chosen nodes.
#[derive(Debug)]
pub(super) struct Leaders {
    /// For each group, the last member that reported itself leader.
    of_group: Vec<Option<Lead>>,
    chosen: Vec<Choice>,
}

impl Leaders {
    /// Creates the record without any reports.
    pub(super) fn new(groups: usize) -> Self {
        Self { of_group: vec![None; groups], chosen: Vec::new() }
    }

    /// Records that an incarnation of a node leads a group. A late report for an earlier term is
    /// ignored.
    pub(super) fn take(&mut self, group: usize, start: (usize, u32), term: Option<u64>) {
        let known = self.of_group[group].map_or(0, |lead| lead.term);
        let term = term.unwrap_or(known);
        if term >= known {
            self.of_group[group] = Some(Lead { start, term });
        }
    }

    /// Returns the nodes that were chosen last.
    pub(super) fn chosen(&self) -> Vec<usize> {
        self.chosen.iter().map(|choice| choice.node).collect()
    }
}

impl Stage<'_> {
    /// Returns the leader of a group, if it is still running.
    pub(super) fn leader_now(&self, group: usize) -> Option<usize> {
        let (node, inc) = self.leaders.of_group[group]?.start;
        let member = &self.members[node];
        (member.runs() && member.inc == inc).then_some(node)
    }

    /// Returns whether every group for which nodes were chosen has another leader.
    pub(super) fn others_lead(&self) -> bool {
        let chosen = &self.leaders.chosen;
        chosen
            .iter()
            .all(|choice| self.leader_now(choice.group).is_some_and(|leader| leader != choice.node))
    }

    /// Chooses a node of each group. If a group has no such node, returns why the plan cannot
    /// continue.
    pub(super) fn choose(&mut self, part: GroupRole, groups: &[usize]) -> Option<String> {
        self.leaders.chosen.clear();
        for &group in groups {
            let Some(node) = self.node_with(part, group) else {
                let part = if part == GroupRole::Leader { "leads it" } else { "follows a leader" };
                return Some(format!("no member of {} {part}", group_name(group)));
            };
            self.leaders.chosen.push(Choice { group, node });
        }
        None
    }

    fn node_with(&self, part: GroupRole, group: usize) -> Option<usize> {
        let leader = self.leader_now(group);
        let GroupRole::Follower { place } = part else { return leader };
        let members = &self.plan.groups[group].members;
        let follows = |node: &usize| self.members[*node].runs() && Some(*node) != leader;
        let followers: Vec<usize> = members.iter().copied().filter(follows).collect();
        followers.get(place.checked_rem(followers.len())?).copied()
    }

    /// Applies a deed to the chosen nodes.
    pub(super) fn do_to_chosen(&mut self, deed: Deed) -> Result<(), Ending> {
        let chosen = self.leaders.chosen();
        match deed {
            Deed::Kill => self.kill(&chosen, Duration::ZERO, false),
            Deed::Start => self.start(&chosen),
            Deed::Stop => chosen.into_iter().try_for_each(|node| self.suspend(node)),
            Deed::Continue => chosen.into_iter().try_for_each(|node| self.resume(node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_reported_leader_of_current_term_leads() {
        let mut leaders = Leaders::new(2);
        let leader = |leaders: &Leaders| leaders.of_group[0].map(|lead| lead.start.0);
        assert_eq!(leader(&leaders), None);
        leaders.take(0, (2, 1), Some(5));
        leaders.take(0, (1, 1), Some(4));
        assert_eq!(leader(&leaders), Some(2), "an old leader speaks late");
        leaders.take(0, (0, 1), None);
        assert_eq!(leader(&leaders), Some(0), "without terms the last one counts");
        leaders.take(1, (3, 1), Some(9));
        assert_eq!(leader(&leaders), Some(0), "groups have nothing to do with each other");
    }
}
