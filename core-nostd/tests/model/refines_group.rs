//! The core's nodes beside the model of the group. Each step of a node, and each write that lands,
//! must correspond to a few actions of the model, each possible in its turn. Afterwards nodes and
//! model must agree on the rows and their copies, on the rounds and slots taken from each sender,
//! and on the deliveries.
//!
//! For small groups, every schedule of steps and landing writes is run; for larger groups, random
//! schedules are run.

mod nodes;
mod random;
mod schedules;

use crate::explorer::Model;
use crate::group::{Action, GroupMember, GroupState, Scope};
use nodes::{Did, Image, NodeAction, Nodes};

/// A group of nodes and the model, side by side.
pub struct GroupPair<'n, 'm> {
    pub scope: &'n Scope,
    pub nodes: &'n mut Nodes<'m>,
    pub state: GroupState,
}

impl GroupPair<'_, '_> {
    /// Performs one action on the nodes, if possible, lets the model follow, and returns the
    /// model's actions.
    pub fn follow(&mut self, what: NodeAction) -> Result<Option<Vec<Action>>, String> {
        let Some(did) = self.nodes.act(what)? else { return Ok(None) };
        let actions = match what {
            NodeAction::Step { member, .. } => self.follow_step(member, did)?,
            NodeAction::Land { reader, writer } => self.follow_landing(reader, writer)?,
        };
        self.scope.check(&self.state).map_err(|wrong| format!("the model itself: {wrong}"))?;
        Ok(Some(actions))
    }

    /// Follows a node's step, in the order of its stages.
    fn follow_step(&mut self, own: usize, did: Did) -> Result<Vec<Action>, String> {
        let mut actions = Vec::new();
        let after = self.nodes.image(own);
        for _ in 0..did.sent {
            self.take_action(Action::Send(own), &mut actions)?;
        }
        for sender in (0..self.scope.senders()).filter(|sender| *sender != own) {
            let known = |member: &GroupMember| (member.taken[sender], member.rounds[sender]);
            while known(&self.state.members[own]) != known(&after.member) {
                self.take_action(Action::Take(own, sender), &mut actions)?;
            }
        }
        if did.nulls > 0 {
            self.follow_nulls(own, did.nulls, &mut actions)?;
        }
        if after.member.rows[own].received != self.state.members[own].rows[own].received {
            self.take_action(Action::Show(own), &mut actions)?;
        }
        while self.state.members[own].rows[own].delivered < after.member.rows[own].delivered {
            self.take_action(Action::Deliver(own), &mut actions)?;
        }
        self.compare(own, &after)?;
        Ok(actions)
    }

    /// Follows a run of nulls: the rounds owed, or all rounds up to the newest message's.
    fn follow_nulls(
        &mut self,
        own: usize,
        nulls: u64,
        taken: &mut Vec<Action>,
    ) -> Result<(), String> {
        let before = self.state.members[own].rounds[own];
        let used = |state: &GroupState| u64::from(state.members[own].rounds[own] - before);
        let all = [Action::Null(own), Action::Complete(own)];
        let fits = |action: &Action| {
            self.scope.next(&self.state, *action).is_some_and(|next| used(&next) == nulls)
        };
        let Some(action) = all.into_iter().find(fits) else {
            return Err(format!("{own} used {nulls} rounds without a message"));
        };
        self.take_action(action, taken)
    }

    /// Follows a node's write, which corresponds to several writes of the model, or to none.
    fn follow_landing(&mut self, own: usize, writer: usize) -> Result<Vec<Action>, String> {
        let mut actions = Vec::new();
        let after = self.nodes.image(own);
        while self.compare(own, &after).is_err() {
            if self.state.members[own].landing[writer].is_empty() {
                self.compare(own, &after)?;
            }
            self.take_action(Action::Land(own, writer), &mut actions)?;
        }
        Ok(actions)
    }

    fn take_action(&mut self, action: Action, taken: &mut Vec<Action>) -> Result<(), String> {
        let next = self.scope.next(&self.state, action);
        self.state = next.ok_or_else(|| format!("a node took {action:?}, which cannot be"))?;
        taken.push(action);
        Ok(())
    }

    /// Checks that a node's state equals that of its member in the model.
    fn compare(&self, own: usize, image: &Image) -> Result<(), String> {
        let (model, node) = (&self.state.members[own], &image.member);
        for (rank, (model, node)) in model.rows.iter().zip(&node.rows).enumerate() {
            let counters = |row: &crate::group::GroupRow| row.slots.map(|slot| slot.counter);
            let same = counters(model) == counters(node)
                && (model.received, model.delivered) == (node.received, node.delivered);
            if !same {
                return Err(format!("{own} has of {rank} {node:?}, and the model {model:?}"));
            }
        }
        // Payloads that may still be delivered.
        for sender in 0..self.scope.senders() {
            for message in model.handed[sender]..model.taken[sender] {
                let slot = usize::from(message) % self.scope.window;
                let (model, node) = (model.rows[sender].slots[slot], node.rows[sender].slots[slot]);
                if model.message != node.message {
                    return Err(format!("{own} has of {sender} {node:?}, and the model {model:?}"));
                }
            }
        }
        let known =
            |member: &GroupMember| (member.rounds, member.obliging, member.taken, member.handed);
        if known(model) != known(node) || image.messages() != messages(model) {
            return Err(format!("{own} holds {node:?}, and the model {model:?}"));
        }
        Ok(())
    }
}

/// Returns the delivered messages with their sequence positions, omitting the nulls in between.
fn messages(member: &GroupMember) -> Vec<(u64, u8)> {
    let turns = member.delivered.iter().enumerate();
    turns
        .filter_map(|(place, turn)| match turn {
            crate::group::RoundUse::Message(message) => Some((place as u64, *message)),
            crate::group::RoundUse::Null => None,
        })
        .collect()
}
