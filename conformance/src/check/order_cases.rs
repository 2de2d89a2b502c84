//! Counts a history's cases for the order checks that span nodes.

use super::class::{Class, Classes};
use super::groups::{GroupId, Groups, NodeSet};
use super::mixing::MixedTable;
use super::roster::{Roster, StartId};
use super::tally::Tally;

/// The number of cases to judge.
#[derive(Debug, Default)]
pub(super) struct OrderCases {
    /// For each group, the number of messages delivered by the incarnations of at least two
    /// members.
    by_group: MixedTable<GroupId, u64>,
    /// For each incarnation, the number of messages that it delivered as a member of a group that
    /// promises an order.
    by_start: MixedTable<StartId, u64>,
    /// Number of messages that two nodes delivered as such members.
    shared: u64,
}

impl OrderCases {
    /// Counts the cases of all classes.
    pub(super) fn of(roster: &Roster, groups: &Groups, classes: &Classes) -> Self {
        let mut cases = Self::default();
        classes.living().for_each(|class| cases.add(roster, groups, class));
        cases
    }

    fn add(&mut self, roster: &Roster, groups: &Groups, class: &Class) {
        let set = groups.of(class.key.groups);
        for group in
            set.groups.iter().filter(|group| groups.groups[group.index()].order.is_ordered())
        {
            let members = class
                .key
                .deliverers()
                .filter(|start| groups.has_member(*group, roster.node_of(*start)));
            if members.take(2).count() == 2 {
                *self.by_group.entry(*group).or_default() += class.count;
            }
        }
        let mut nodes = NodeSet::default();
        let mut distinct = 0;
        for start in class
            .key
            .deliverers()
            .filter(|start| groups.is_ordered(class.key.groups, roster.node_of(*start)))
        {
            *self.by_start.entry(start).or_default() += class.count;
            distinct += u64::from(nodes.insert(roster.node_of(start)));
        }
        if distinct > 1 {
            self.shared += class.count;
        }
    }

    /// Adds the cases to total order, acyclic order and prefix order.
    pub(super) fn count(&self, [total, acyclic, prefix]: [&mut Tally; 3]) {
        total.cases(self.by_group.values().filter(|count| **count > 1).sum());
        acyclic.cases(self.by_start.values().filter(|count| **count > 1).sum());
        prefix.cases(self.shared);
    }
}
