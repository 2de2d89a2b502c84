//! Restarts a group, in attempts that are repeated until the group continues or power is lost
//! again.

use tramontane_core::ids::DurableCount;
use tramontane_core::restart::Verdict;

use super::answers::{Disk, Promised, with_restart};
use super::group::LoggedGroup;
use super::member::{MessageInView, PowerCut};
use super::values::{self, ViewMembers};

/// Returns the messages as pairs of view and number.
pub fn named(messages: &[MessageInView]) -> Vec<(u64, u8)> {
    messages.iter().map(|(view, bytes)| (*view, bytes[0])).collect()
}

/// An attempt to restart.
struct Attempt {
    ballot: (u32, u32),
    base: ViewMembers,
    next: ViewMembers,
    is_adopted: bool,
    participants: Vec<u32>,
    /// Damaged records: the node that lacks the record, the node that has it, and the record.
    repairs: Vec<(u32, u32, u64)>,
    /// The node with the chosen log, and its end.
    log: Option<(u32, u64)>,
}

impl LoggedGroup {
    /// Restarts with randomly chosen nodes, and with more nodes if these have to wait.
    pub fn restart(&mut self) -> Result<(), PowerCut> {
        for member in &mut self.members {
            member.open()?;
        }
        let all: Vec<u32> = (0..self.members.len() as u32).collect();
        let mut here: Vec<u32> = Vec::new();
        for node in &all {
            if !self.chance.is_one_of(3) {
                here.push(*node);
            }
        }
        loop {
            let Some(attempt) = self.attempt(&here) else {
                assert_ne!(here, all, "all are there, and wait");
                here.clone_from(&all);
                continue;
            };
            self.carry_out(&attempt)?;
            if !attempt.is_adopted {
                return Ok(());
            }
            self.reached.adopted += 1;
        }
    }

    /// Returns the attempt that these nodes may make, if any.
    fn attempt(&mut self, here: &[u32]) -> Option<Attempt> {
        let disks: Vec<(u32, Disk)> =
            here.iter().map(|node| (*node, self.member(*node).answer())).collect();
        let lent: Vec<(u32, &Disk)> = disks.iter().map(|(node, disk)| (*node, disk)).collect();
        let subgroup: Vec<u32> = (0..self.members.len() as u32).collect();
        with_restart(&lent, &[subgroup], |restart| {
            let Verdict::Go(plan) = restart.verdict() else { return None };
            let participants: Vec<u32> = restart.participants(&plan).map(|node| node.0).collect();
            let mut repairs = Vec::new();
            for (node, disk) in disks.iter().filter(|(node, _)| participants.contains(node)) {
                let runs = disk.logs.iter().flatten().flat_map(|log| &log.damaged);
                for at in runs.flat_map(|run| run.0..run.1) {
                    let has = restart.has_intact(&plan, 0, DurableCount(at));
                    repairs.extend(has.map(|(other, _)| (*node, other.0, at)));
                }
            }
            let taken = restart.log_of(&plan, 0).expect("it need not wait");
            let next = restart.next_members(&plan).map(|node| node.0).collect();
            Some(Attempt {
                ballot: (plan.attempt, participants[0]),
                base: (plan.base.id.0, plan.base.members.iter().map(|node| node.0).collect()),
                next: (plan.next_id().0, next),
                is_adopted: plan.adopted.is_some(),
                participants,
                repairs,
                log: taken.map(|taken| (taken.node.0, taken.end.end.0)),
            })
        })
    }

    fn carry_out(&mut self, attempt: &Attempt) -> Result<(), PowerCut> {
        for node in &attempt.participants {
            values::keep_heard(self.member(*node).log(), attempt.ballot)?;
        }
        for (node, other, at) in &attempt.repairs {
            let message = self.member(*other).message(*at).expect("it has it intact");
            self.member(*node).repair(*at, &[message])?;
            self.reached.repaired += 1;
        }
        let log: Vec<MessageInView> = match attempt.log {
            Some((source, end)) => self.member(source).messages(end),
            None => Vec::new(),
        };
        for node in &attempt.participants {
            if attempt.next.1.contains(node) {
                self.take(*node, &log)?;
            }
            let (ballot, (id, members)) = (attempt.ballot, attempt.next.clone());
            let promise = Promised { ballot, id, members, ends: vec![Some(log.len() as u64)] };
            values::keep(self.member(*node).log(), Some(&attempt.base), Some(&promise))?;
        }
        self.decide(attempt, log)
    }

    /// Makes a participant's log equal to the chosen one.
    fn take(&mut self, node: u32, log: &[MessageInView]) -> Result<(), PowerCut> {
        let member = self.member(node);
        let own: Vec<_> = (0..member.durable()).map(|at| member.message(at)).collect();
        let is_same =
            |(own, of): &(&Option<MessageInView>, &MessageInView)| own.as_ref() == Some(*of);
        let common = own.iter().zip(log).take_while(is_same).count();
        let is_cut = member.cut(common as u64)?;
        log[common..].iter().for_each(|message| member.deliver(message));
        member.commit()?;
        self.reached.set_aside += u64::from(is_cut);
        Ok(())
    }

    /// Checks the conditions for deciding the next view. The members of that view then record it.
    fn decide(&mut self, attempt: &Attempt, log: Vec<MessageInView>) -> Result<(), PowerCut> {
        let (id, members) = &attempt.next;
        let before = self.decided.entry(*id).or_insert_with(|| members.clone());
        assert_eq!(before, members, "one view {id}");
        assert!(!self.decided.keys().any(|later| later > id), "view {id} is of the past");
        assert!(log.len() >= self.reported.len(), "what was durable at a majority is lost");
        let kept = log.iter().zip(&self.reported).take_while(|(one, other)| one == other).count();
        let (names, reported) = (named(&log), named(&self.reported));
        assert_eq!(kept, reported.len(), "{names:?} is not what was durable: {reported:?}");
        for node in attempt.participants.iter().filter(|node| members.contains(node)) {
            let own = self.member(*node).messages(log.len() as u64);
            assert!(own == log && self.member(*node).durable() == log.len() as u64);
        }
        (self.view, self.order) = (attempt.next.clone(), log);
        for node in attempt.participants.iter().filter(|node| members.contains(node)) {
            values::keep(self.member(*node).log(), Some(&attempt.next), None)?;
        }
        Ok(())
    }
}
