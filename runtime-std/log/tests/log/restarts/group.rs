//! A group that delivers messages and changes its view, until power is lost.

use std::collections::BTreeMap;

use super::answers::Promised;
use super::member::{LoggedMember, MessageInView, PowerCut};
use super::values::{self, ViewMembers};
use crate::support::Chance;

/// Counts of events.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestartsReached {
    pub power_cuts: u64,
    pub in_restarts: u64,
    pub adopted: u64,
    pub set_aside: u64,
    pub repaired: u64,
    pub views: u64,
}

pub struct LoggedGroup {
    pub members: Vec<LoggedMember>,
    pub view: ViewMembers,
    /// The delivered messages, in order, since the group began.
    pub order: Vec<MessageInView>,
    /// Messages that may have been reported as durable at a majority.
    pub reported: Vec<MessageInView>,
    /// Views that any member decided.
    pub decided: BTreeMap<u64, Vec<u32>>,
    pub chance: Chance,
    pub reached: RestartsReached,
    /// Number of the next message, which is unique.
    next_message: u64,
}

impl LoggedGroup {
    /// Creates a group of `count` members, in its first view.
    pub fn new(count: u32, seed: u64) -> Self {
        let mut members: Vec<LoggedMember> = (0..count).map(|_| LoggedMember::new()).collect();
        let view: ViewMembers = (1, (0..count).collect());
        for member in &mut members {
            member.open().expect("power is on");
            values::keep(member.log(), Some(&view), None).expect("power is on");
        }
        Self {
            members,
            decided: BTreeMap::from([view.clone()]),
            view,
            order: Vec::new(),
            reported: Vec::new(),
            chance: Chance::new(seed),
            reached: RestartsReached::default(),
            next_message: 0,
        }
    }

    pub fn member(&mut self, node: u32) -> &mut LoggedMember {
        &mut self.members[node as usize]
    }

    /// Runs for `turns` turns, or until power is lost.
    pub fn run(&mut self, turns: u64) -> Result<(), PowerCut> {
        for _ in 0..turns {
            match self.chance.below(12) {
                0..4 => self.send(),
                4..8 => {
                    let node = self.any_member();
                    self.deliver(node, 1);
                }
                8..11 => {
                    let node = self.any_member();
                    self.member(node).commit()?;
                    self.report();
                }
                _ if self.chance.is_one_of(3) => self.change()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn any_member(&mut self) -> u32 {
        let at = self.chance.below(self.view.1.len() as u64);
        self.view.1[at as usize]
    }

    /// Makes all members of the view receive a message.
    fn send(&mut self) {
        let bytes = 1 + self.chance.below(700);
        let number = self.next_message;
        self.next_message += 1;
        let message = crate::support::message(number, bytes as usize);
        let message = [&number.to_le_bytes()[..], &message].concat();
        self.order.push((self.view.0, message));
    }

    /// Lets a member deliver up to `count` further messages.
    fn deliver(&mut self, node: u32, count: u64) {
        for _ in 0..count {
            let at = self.member(node).delivered() as usize;
            let Some(message) = self.order.get(at).cloned() else { return };
            self.member(node).deliver(&message);
        }
    }

    /// Records the messages durable at a majority of the view, because a member may have seen that.
    fn report(&mut self) {
        let nodes = self.view.1.clone();
        let mut counts: Vec<u64> = nodes.iter().map(|node| self.member(*node).durable()).collect();
        counts.sort_unstable();
        let count = counts[(counts.len() - 1) / 2] as usize;
        if count > self.reported.len() {
            self.reported = self.order[..count].to_vec();
        }
    }

    /// Ends the view: a member leaves, or all absent members return.
    fn change(&mut self) -> Result<(), PowerCut> {
        let goes = self.any_member();
        let away: Vec<u32> =
            (0..self.members.len() as u32).filter(|node| !self.view.1.contains(node)).collect();
        let mut next: Vec<u32> = self.view.1.clone();
        // A majority of the view must agree.
        if self.chance.is_one_of(2) && next.len() > 2 {
            next.retain(|node| *node != goes);
        } else {
            next.extend(&away);
        }
        if next == self.view.1 {
            return Ok(());
        }
        let stay: Vec<u32> =
            next.iter().copied().filter(|node| self.view.1.contains(node)).collect();
        // Messages that some survivor has not received are dropped, because no member has delivered
        // them.
        let most = stay.iter().map(|node| self.member(*node).delivered()).max().unwrap_or(0);
        let trim = most + self.chance.below(self.order.len() as u64 - most + 1);
        self.order.truncate(trim as usize);
        let view = (self.view.0 + 1, next.clone());
        for node in &stay {
            // The change sometimes stops halfway, when only some members have promised.
            self.deliver(*node, u64::MAX);
            self.member(*node).commit()?;
            let ends = vec![Some(trim)];
            let promise = Promised { ballot: (0, 1), id: view.0, members: next.clone(), ends };
            values::keep(self.member(*node).log(), None, Some(&promise))?;
        }
        self.decided.insert(view.0, view.1.clone());
        for node in away.iter().filter(|node| next.contains(node)) {
            self.join(*node)?;
        }
        for node in &next {
            values::keep(self.member(*node).log(), Some(&view), None)?;
        }
        self.view = view;
        self.reached.views += 1;
        Ok(())
    }

    /// Lets a node receive the log before the node counts. Its last process was killed, or
    /// committed its deliveries before it ended.
    fn join(&mut self, node: u32) -> Result<(), PowerCut> {
        let order = self.order.clone();
        if self.chance.is_one_of(2) {
            self.member(node).commit()?;
        }
        self.member(node).kill();
        let member = self.member(node);
        let own: Vec<_> = (0..member.durable()).map(|at| member.message(at)).collect();
        let common = own.iter().zip(&order).take_while(|(own, of)| own.as_ref() == Some(*of));
        let common = common.count() as u64;
        let is_cut = member.cut(common)?;
        self.reached.set_aside += u64::from(is_cut);
        self.deliver(node, u64::MAX);
        self.member(node).commit()
    }
}
