//! Defects of the sequencer of groups without views.

use std::time::{Duration, Instant};

use super::mutation::{Mutant, Mutation};
use crate::shards::Shards;

/// The message with which the sequencer is wrong: the fifth for which the defect is possible.
const ODD: u64 = 5;

/// The message to use if a member must have delivered it long before it is killed.
const EARLY: u64 = 1;

/// How long a message may be held back until after the next one.
const HELD_MAX: Duration = Duration::from_millis(30);

/// A message that the wrong group has not received yet.
struct HeldBack {
    number: u64,
    to: Vec<u64>,
    since: Instant,
    /// The groups of messages that came in between, if they share a group with this message.
    behind: Vec<String>,
}

/// The defect and its progress.
#[derive(Default)]
pub struct Wrong {
    mutation: Option<Mutation>,
    seen: u64,
    done: bool,
    held: Option<HeldBack>,
}

impl Wrong {
    /// Creates the state; without a mutation nothing is wrong.
    pub fn new(mutation: Option<Mutation>) -> Self {
        Self { mutation, ..Self::default() }
    }

    /// Returns whether a message is held back.
    pub fn waits(&self) -> bool {
        self.held.is_some()
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.mutation.as_ref().is_some_and(|mutation| mutation.mutant == mutant)
    }

    fn at(&self) -> &str {
        self.mutation.as_ref().and_then(|mutation| mutation.at.as_deref()).unwrap_or_default()
    }

    /// Returns whether this is the message with which to be wrong.
    fn is_odd(&mut self, could_be: bool) -> bool {
        self.seen += u64::from(could_be);
        let odd_from = if self.is(Mutant::LoseWithLeader) { EARLY } else { ODD };
        let odd = could_be && !self.done && self.seen >= odd_from;
        self.done |= odd;
        odd
    }
}

impl Shards {
    /// Returns the receivers and the entries to send to them, after an entry was ordered that
    /// should go to `to`.
    pub fn misdirect(&mut self, number: u64, mut to: Vec<u64>) -> Vec<(u64, u64)> {
        let Some(group) = self.wrong_group() else {
            return to.into_iter().map(|connection| (connection, number)).collect();
        };
        let groups = self.entries[number as usize - 1].groups.clone();
        let is_for = groups.contains(&group);
        let in_group =
            |connection: &u64| self.peers[connection].is_for(std::slice::from_ref(&group));
        if self.wrong.is(Mutant::LoseWithLeader) && self.wrong.is_odd(is_for) {
            let at = self.wrong.at();
            to.retain(|connection| self.peers[connection].node.as_deref() == Some(at));
        } else if self.wrong.is(Mutant::LoseInGroup) {
            let led_again = self.groups[&group].term > 1;
            if self.wrong.is_odd(is_for && groups.len() > 1 && led_again) {
                to.retain(|connection| !in_group(connection));
            }
        } else if self.wrong.is(Mutant::WrongGroup) && self.wrong.is_odd(!is_for) {
            to.extend(self.peers.keys().copied().filter(in_group));
        } else if self.wrong.is(Mutant::OrderDifferently) || self.wrong.is(Mutant::OrderInARing) {
            return self.hold(&group, number, to);
        }
        to.into_iter().map(|connection| (connection, number)).collect()
    }

    /// Returns the group in which the defect occurs.
    fn wrong_group(&self) -> Option<String> {
        let at = self.wrong.at().to_owned();
        let found = self.groups.iter().find(|(_, shard)| shard.members.contains(&at));
        found.map(|(group, _)| group.clone())
    }

    /// MUTANT `order-differently`, `order-in-a-ring`: once, the group gets an entry after the next
    /// one, and this contradicts other groups' deliveries.
    fn hold(&mut self, group: &String, number: u64, to: Vec<u64>) -> Vec<(u64, u64)> {
        let groups = self.entries[number as usize - 1].groups.clone();
        let (mine, others): (Vec<u64>, Vec<u64>) = to
            .into_iter()
            .partition(|connection| self.peers[connection].is_for(std::slice::from_ref(group)));
        let mut given: Vec<(u64, u64)> =
            others.into_iter().map(|connection| (connection, number)).collect();
        if !groups.contains(group) {
            self.note_between(&groups);
            return given;
        }
        let held = self.wrong.held.take();
        let contradicts = held.as_ref().is_some_and(|held| self.contradicts(group, held, number));
        let before = held.iter().flat_map(|held| {
            held.to.iter().map(|connection| (*connection, held.number)).collect::<Vec<_>>()
        });
        if contradicts {
            self.wrong.done = true;
            given.extend(mine.iter().map(|connection| (*connection, number)));
            given.extend(before);
        } else if self.wrong.done || groups.len() == 1 {
            given.extend(before);
            given.extend(mine.iter().map(|connection| (*connection, number)));
        } else {
            given.extend(before);
            let since = Instant::now();
            self.wrong.held = Some(HeldBack { number, to: mine, since, behind: Vec::new() });
        }
        given
    }

    /// Notes the groups that learn of a message after the one that is held back.
    fn note_between(&mut self, groups: &[String]) {
        let Some(held) = &mut self.wrong.held else { return };
        let first = &self.entries[held.number as usize - 1].groups;
        if groups.iter().any(|group| first.contains(group) || held.behind.contains(group)) {
            held.behind.extend(groups.iter().cloned());
        }
    }

    /// Returns whether other groups see the message that is held back before this one.
    fn contradicts(&self, group: &String, held: &HeldBack, number: u64) -> bool {
        let [first, second] =
            [held.number, number].map(|number| &self.entries[number as usize - 1]);
        let shared = |groups: &[String]| {
            second.groups.iter().any(|other| other != group && groups.contains(other))
        };
        let in_both = shared(&first.groups);
        let wanted = if self.wrong.is(Mutant::OrderDifferently) {
            in_both
        } else {
            !in_both && shared(&held.behind)
        };
        wanted && first.sender != second.sender
    }

    /// Releases a message that was held back for too long.
    pub fn release(&mut self) {
        let is_old = |held: &mut HeldBack| held.since.elapsed() > HELD_MAX;
        if let Some(held) = self.wrong.held.take_if(is_old) {
            for connection in held.to {
                self.give(connection, held.number);
            }
        }
    }

    /// MUTANT `double-after-leader-change`: returns the group's last entry again, for all its
    /// members.
    pub fn doubled(&self, group: &str) -> Vec<(u64, u64)> {
        let is_it = self.wrong.is(Mutant::DoubleAfterLeaderChange)
            && self.groups[group].term > 1
            && self.groups[group].members.iter().any(|member| member == self.wrong.at());
        let group = group.to_owned();
        let last = self.entries.iter().rposition(|entry| entry.groups.contains(&group));
        let Some(last) = last.filter(|_| is_it) else { return Vec::new() };
        let members = self.peers.iter().filter(|(_, peer)| peer.groups.contains(&group));
        members.map(|(connection, _)| (*connection, last as u64 + 1)).collect()
    }

    /// MUTANT `state-hole`: returns how many of the first entries a member that comes back does not
    /// get.
    pub fn forgotten(&self) -> usize {
        usize::from(self.wrong.is(Mutant::StateHole))
    }
}
