//! Conditions at the end of all faults: no message is duplicated, reordered or lost, and every
//! member that can continue is in one view.

use std::collections::{BTreeMap, BTreeSet};

use super::{Chain, belongs};

impl Chain {
    /// Checks the conditions that hold once all faults have ended.
    pub(super) fn judge(&mut self) -> Result<(), String> {
        // Deliveries by the current members in their view.
        let inside: Vec<(u32, usize, usize)> = self
            .nodes
            .iter()
            .filter(|(_, n)| n.alive && !n.out)
            .filter_map(|(node, n)| n.at.map(|(view, rank)| (*node, view, rank)))
            .collect();
        let mut whole: BTreeMap<u32, Vec<Vec<u64>>> = BTreeMap::new();
        for (node, view, rank) in &inside {
            let mut lists = self.nodes[node].delivered.clone();
            for (id, rule) in self.rules[*view].iter().enumerate() {
                lists[*rule].extend(self.delivered_in(*view, *rank, id));
            }
            whole.insert(*node, lists);
        }
        for (node, traveller) in &self.nodes {
            for list in whole.get(node).unwrap_or(&traveller.delivered) {
                let mut last: BTreeMap<u64, u64> = BTreeMap::new();
                for message in list {
                    let before = last.insert(message >> 32, *message);
                    if before.is_some_and(|before| before >= *message) {
                        return Err(format!("{node} delivers {message:x} after {before:x?}"));
                    }
                }
            }
        }
        let newest = self.arenas.len() - 1;
        let count = self.arenas[newest].members.len();
        let here: Vec<u32> =
            inside.iter().filter(|(_, view, _)| *view == newest).map(|(node, ..)| *node).collect();
        if here.is_empty() || !self.may_live(newest) {
            self.reached.stopped_groups += 1;
            return Ok(());
        }
        if here.len() < count {
            return Err(format!("view {} has {count} members, and only {here:?} live", newest + 1));
        }
        if inside.len() != here.len() {
            return Err(format!("in the newest view are {here:?}; alive are {inside:?}"));
        }
        // VIE-7: a survivor's messages are delivered at all members that have been in the group
        // since the first view.
        for (node, lists) in &whole {
            for (rule, list) in lists.iter().enumerate() {
                for (sender, ..) in inside.iter().filter(|(sender, ..)| belongs(*sender, rule)) {
                    let traveller = &self.nodes[sender];
                    let expected = self.own_messages(*sender, rule);
                    let got: Vec<u64> =
                        list.iter().copied().filter(|m| (m >> 32) as u32 == *sender).collect();
                    let whole_time = self.nodes[node].since == Some(0)
                        || traveller.since >= self.nodes[node].since;
                    if belongs(*node, rule) && whole_time && got != expected {
                        return Err(format!(
                            "{node} has {got:x?} of {sender}, which sent {expected:x?}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether the newest view has a majority that can still act: neither crashed, nor
    /// halted, nor suspected.
    fn may_live(&self, newest: usize) -> bool {
        let arena = &self.arenas[newest];
        let fit = (0..arena.members.len()).filter(|rank| arena.is_active(*rank)).count();
        fit * 2 > arena.members.len()
    }

    /// Returns all messages that a node has sent in the subgroup of a rule, in order, whether or
    /// not it has delivered them.
    fn own_messages(&self, node: u32, rule: usize) -> Vec<u64> {
        let traveller = &self.nodes[&node];
        let mut all: BTreeSet<u64> = traveller.to_send[rule].iter().copied().collect();
        all.extend(
            traveller.delivered[rule].iter().filter(|message| (**message >> 32) as u32 == node),
        );
        if let Some((view, rank)) = traveller.at {
            for (id, _) in self.rules[view].iter().enumerate().filter(|(_, r)| **r == rule) {
                all.extend(
                    self.arenas[view].members[rank].around.parts[id].rounds.iter().flatten(),
                );
            }
        }
        all.into_iter().collect()
    }
}
