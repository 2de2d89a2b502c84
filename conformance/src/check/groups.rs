//! Groups, and the sets of groups to which messages are addressed.
//!
//! Invariants: a group that was never declared has no members; the groups of a set are in the order
//! in which the set's first message named them; equal lists of groups share one id.

use std::collections::BTreeSet;

use super::mixing::MixedTable;
use super::roster::{NodeId, Roster, contradiction};
use crate::history::{GroupOrder, Trouble};

/// The id of a group, in order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct GroupId(pub(super) u32);

impl GroupId {
    /// Returns the group's index in tables by group.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// An order of messages: one group's own order, or the order that all other groups share.
pub(super) type Lane = Option<GroupId>;

/// The id of a message's set of groups, in order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct GroupSetId(pub(super) u32);

/// Only nodes below this id have a bit, because a bit for every node could take more memory than
/// the history.
const BITS_MAX: usize = 4096;

/// A set of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeSet {
    words: Vec<u64>,
    rest: BTreeSet<NodeId>,
}

impl NodeSet {
    /// Adds a node; returns whether it is new in the set.
    pub(super) fn insert(&mut self, node: NodeId) -> bool {
        if node.index() >= BITS_MAX {
            return self.rest.insert(node);
        }
        let (word, bit) = (node.index() / 64, 1 << (node.index() % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Returns whether the set has the node.
    pub(super) fn has(&self, node: NodeId) -> bool {
        match self.words.get(node.index() / 64) {
            Some(word) => word & (1 << (node.index() % 64)) != 0,
            None => self.rest.contains(&node),
        }
    }
}

/// A group.
#[derive(Debug, Default)]
pub(super) struct KnownGroup {
    /// Its name.
    pub(super) name: Box<str>,
    /// Whether a `group` record declared the group.
    pub(super) declared: bool,
    /// Its members.
    pub(super) members: Vec<NodeId>,
    /// The members as a set.
    pub(super) member_set: NodeSet,
    /// The order that the group promises.
    pub(super) order: GroupOrder,
    senders: NodeSet,
}

/// The groups of a message.
#[derive(Debug)]
pub(super) struct GroupSet {
    /// The groups.
    pub(super) groups: Vec<GroupId>,
    /// The order to which the messages belong.
    pub(super) lane: Lane,
}

/// All groups and sets of groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    ids: MixedTable<Box<str>, GroupId>,
    /// The groups, by id.
    pub(super) groups: Vec<KnownGroup>,
    set_ids: MixedTable<Vec<GroupId>, GroupSetId>,
    sets: Vec<GroupSet>,
}

impl Groups {
    /// Takes a `group`.
    pub(super) fn declare(
        &mut self,
        roster: &mut Roster,
        name: &str,
        members: &[impl AsRef<str>],
        senders: &[impl AsRef<str>],
        order: GroupOrder,
    ) -> Result<(), Trouble> {
        if let Some(known) = self.ids.get(name) {
            let again = self.groups[known.index()].declared;
            return Err(contradiction(if again {
                format!("group {name} is declared a second time")
            } else {
                format!("group {name} is declared after a delivery named it")
            }));
        }
        let (member_list, member_set) = distinct(roster, name, "member", members)?;
        let (_, senders) = distinct(roster, name, "sender", senders)?;
        let group = KnownGroup {
            name: name.into(),
            declared: true,
            members: member_list,
            member_set,
            order,
            senders,
        };
        self.add(name, group);
        Ok(())
    }

    fn add(&mut self, name: &str, group: KnownGroup) -> GroupId {
        let new = GroupId(u32::try_from(self.groups.len()).unwrap_or(u32::MAX));
        self.ids.insert(name.into(), new);
        self.groups.push(group);
        new
    }

    /// Returns a group that must have been declared.
    pub(super) fn declared(&self, name: &str) -> Result<GroupId, Trouble> {
        let known = self.ids.get(name).copied().filter(|known| self.groups[known.index()].declared);
        known.ok_or_else(|| contradiction(format!("group {name} was not declared before")))
    }

    /// Returns the group that a delivery names, declared or not.
    pub(super) fn named(&mut self, name: &str) -> GroupId {
        match self.ids.get(name) {
            Some(known) => *known,
            None => self.add(name, KnownGroup { name: name.into(), ..KnownGroup::default() }),
        }
    }

    /// Returns the set of groups to which a message of this sender is addressed.
    pub(super) fn set(
        &mut self,
        roster: &Roster,
        sender: NodeId,
        names: &[impl AsRef<str>],
    ) -> Result<GroupSetId, Trouble> {
        let mut groups = Vec::with_capacity(names.len());
        for name in names {
            let group = self.declared(name.as_ref())?;
            let sender_name = &roster.nodes[sender.index()].name;
            if !self.groups[group.index()].senders.has(sender) {
                return Err(contradiction(format!(
                    "{sender_name} may not send to {}, because it is not among the group's senders",
                    name.as_ref()
                )));
            }
            groups.push(group);
        }
        if groups.is_empty() {
            return Err(contradiction("the message names no group".to_owned()));
        }
        if let Some(known) = self.set_ids.get(&groups) {
            return Ok(*known);
        }
        self.new_set(groups)
    }

    fn new_set(&mut self, groups: Vec<GroupId>) -> Result<GroupSetId, Trouble> {
        let mut sorted = groups.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = &self.groups[twice[0].index()].name;
            return Err(contradiction(format!("the message names {name} twice")));
        }
        let alone = groups
            .iter()
            .copied()
            .find(|group| self.groups[group.index()].order == GroupOrder::Group);
        if let Some(alone) = alone.filter(|_| groups.len() > 1) {
            let name = &self.groups[alone.index()].name;
            return Err(contradiction(format!(
                "the message is addressed to {name}, which is ordered separately, and also to \
                 other groups"
            )));
        }
        let new = GroupSetId(u32::try_from(self.sets.len()).unwrap_or(u32::MAX));
        self.set_ids.insert(groups.clone(), new);
        self.sets.push(GroupSet { groups, lane: alone });
        Ok(new)
    }

    /// Returns the groups of a set.
    pub(super) fn of(&self, set: GroupSetId) -> &GroupSet {
        &self.sets[set.0 as usize]
    }

    /// Returns whether a node is a member of any group of a set.
    pub(super) fn is_addressed(&self, set: GroupSetId, node: NodeId) -> bool {
        self.of(set).groups.iter().any(|group| self.has_member(*group, node))
    }

    /// Returns whether a node is a member of any group of the set that promises one order.
    pub(super) fn is_ordered(&self, set: GroupSetId, node: NodeId) -> bool {
        let mut groups = self.of(set).groups.iter().map(|group| &self.groups[group.index()]);
        groups.any(|group| group.order.is_ordered() && group.member_set.has(node))
    }

    /// A group's name.
    pub(super) fn name(&self, group: GroupId) -> &str {
        &self.groups[group.index()].name
    }

    /// Returns whether a node is a member of any group.
    pub(super) fn is_member(&self, node: NodeId) -> bool {
        self.groups.iter().any(|group| group.member_set.has(node))
    }

    /// Returns whether a node is a member of a group.
    pub(super) fn has_member(&self, group: GroupId, node: NodeId) -> bool {
        self.groups[group.index()].member_set.has(node)
    }
}

/// Returns the nodes, and refuses a node that is named twice.
fn distinct(
    roster: &mut Roster,
    group: &str,
    what: &str,
    names: &[impl AsRef<str>],
) -> Result<(Vec<NodeId>, NodeSet), Trouble> {
    let (mut list, mut set) = (Vec::with_capacity(names.len()), NodeSet::default());
    for name in names {
        let node = roster.node(name.as_ref());
        if !set.insert(node) {
            return Err(contradiction(format!(
                "group {group} names its {what} {} twice",
                name.as_ref()
            )));
        }
        list.push(node);
    }
    Ok((list, set))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> (Groups, Roster) {
        let (mut groups, mut roster) = (Groups::default(), Roster::default());
        for (name, members, order) in
            [("g0", ["n0", "n1"], GroupOrder::Total), ("g1", ["n1", "n2"], GroupOrder::Sender)]
        {
            groups.declare(&mut roster, name, &members, &["n0"], order).expect("it is new");
        }
        (groups, roster)
    }

    #[test]
    fn message_addresses_members_of_all_its_groups() {
        let (mut groups, roster) = declared();
        let set = groups.set(&roster, NodeId(0), &["g0", "g1"]).expect("n0 may send");
        assert!((0..3).all(|node| groups.is_addressed(set, NodeId(node))));
        assert!(groups.is_ordered(set, NodeId(1)));
        assert!(!groups.is_ordered(set, NodeId(2)), "g1 promises no order to all");
        assert_eq!(groups.set(&roster, NodeId(0), &["g0", "g1"]), Ok(set));
    }

    #[test]
    fn node_set_contains_inserted_nodes() {
        let mut set = NodeSet::default();
        for node in [0, 63, 64, 4095, 4096, 1 << 30] {
            assert!(!set.has(NodeId(node)));
            assert!(set.insert(NodeId(node)) && !set.insert(NodeId(node)));
            assert!(set.has(NodeId(node)) && !set.has(NodeId(node + 1)));
        }
    }

    #[test]
    fn contradictory_group_records_are_refused() {
        let (mut groups, mut roster) = declared();
        let none: [&str; 0] = [];
        assert!(groups.set(&roster, NodeId(0), &none).is_err());
        assert!(groups.set(&roster, NodeId(0), &["g0", "g0"]).is_err());
        assert!(groups.set(&roster, NodeId(0), &["g7"]).is_err());
        assert!(groups.set(&roster, NodeId(1), &["g0"]).is_err(), "n1 is no sender");
        assert!(groups.declare(&mut roster, "g0", &["n0"], &none, GroupOrder::Total).is_err());
        assert!(
            groups.declare(&mut roster, "g2", &["n0", "n0"], &none, GroupOrder::Total).is_err()
        );
        groups.declare(&mut roster, "own", &["n0"], &["n0"], GroupOrder::Group).expect("it is new");
        assert!(
            groups.set(&roster, NodeId(0), &["g0", "own"]).is_err(),
            "own has no order with others"
        );
        groups.named("g9");
        assert!(groups.declared("g9").is_err());
        assert!(groups.declare(&mut roster, "g9", &["n0"], &none, GroupOrder::Total).is_err());
    }
}
