//! Scenarios with several groups and with senders that are not members.

use crate::drive::plan::{Condition, Draft, PlannedSend, Step};
use crate::drive::protocol::WINDOW;
use crate::drive::reach::Reach;

/// After a kill, messages are sent in this many rounds with pauses between them, so that the load
/// lasts while the other nodes recover.
const ROUNDS_AFTER_KILL: u64 = 8;
const PACED_MS: u64 = 25;

pub(super) fn overlapping(draft: &mut Draft) {
    let shuffled = draft.shuffled();
    let last = draft.nodes - 1;
    for members in [&shuffled[..], &shuffled[..last], &shuffled[1..]] {
        draft.lone_group(members.to_vec(), members.to_vec());
    }
    draft.start(draft.everyone());
    let groups = [shuffled.clone(), shuffled[..last].to_vec(), shuffled[1..].to_vec()];
    let mut list = Vec::new();
    for _ in 0..draft.scale.div_ceil(2) {
        for (group, members) in groups.iter().enumerate() {
            for &sender in members {
                list.push(PlannedSend { sender, groups: vec![group], bytes: draft.bytes() });
            }
        }
    }
    draft.then(Step::Send(list));
    draft.must_reach(Reach::GroupsInterleave);
}

/// Three groups form a ring: each group shares one member with each of its two neighbours. This is
/// the smallest shape in which the orders of three groups can contradict each other. Further nodes
/// are members of two groups.
pub(super) fn across(draft: &mut Draft) {
    let ring = AcrossGroups::begin(draft);
    let everyone = draft.everyone();
    ring.send(draft, &everyone, draft.scale, false);
    draft.must_reach(Reach::AcrossGroups { count: draft.scale.div_ceil(4) });
}

/// The groups of `across`; a node that sends to several groups is killed. No group loses its
/// majority, because each has at least three members.
pub(super) fn across_kill(draft: &mut Draft) {
    let ring = AcrossGroups::begin(draft);
    let victim = ring.shuffled[0];
    let (others, few) = (draft.others(&[victim]), draft.few());
    ring.send(draft, &[victim], few, true);
    draft.then(Step::Await(Condition::Answered { node: victim, count: few }));
    let answered = few + draft.chance.between(1, WINDOW as u64 / 4);
    // The other nodes' output must not delay the victim's answers.
    ring.send(draft, &others, few, false);
    ring.send(draft, &[victim], WINDOW as u64, true);
    draft.then(Step::Await(Condition::Answered { node: victim, count: answered }));
    draft.kill(victim);
    for _ in 0..ROUNDS_AFTER_KILL {
        ring.send(draft, &others, draft.scale.div_ceil(ROUNDS_AFTER_KILL), false);
        draft.then(Step::Wait { ms: PACED_MS });
    }
    draft.must_reach(Reach::KilledAcross { node: victim });
    draft.must_reach(Reach::AcrossGroups { count: draft.scale.div_ceil(4) });
}

/// The groups of `across`.
struct AcrossGroups {
    shuffled: Vec<usize>,
    groups: Vec<Vec<usize>>,
}

impl AcrossGroups {
    /// Declares the groups, and starts all nodes.
    fn begin(draft: &mut Draft) -> Self {
        let shuffled = draft.shuffled();
        let mut groups = vec![Vec::new(); 3];
        for (place, &node) in shuffled.iter().enumerate() {
            groups[place % 3].push(node);
            groups[(place + 1) % 3].push(node);
        }
        // With enough nodes, one is a member of all groups, so that messages for all three have a
        // sender.
        if let Some(&hub) = shuffled.get(3) {
            let missing = groups.iter_mut().find(|members| !members.contains(&hub));
            missing.into_iter().for_each(|members| members.push(hub));
        }
        for members in &groups {
            draft.group(members.clone(), members.clone());
        }
        draft.start(draft.everyone());
        Self { shuffled, groups }
    }

    /// Has each sender send `each` messages to some of its groups, or to at least two if
    /// `to_several` is set.
    fn send(&self, draft: &mut Draft, senders: &[usize], each: u64, to_several: bool) {
        let mut list = Vec::new();
        for _ in 0..each {
            for &sender in senders {
                let has = |group: &usize| self.groups[*group].contains(&sender);
                let mut chosen: Vec<usize> = (0..self.groups.len()).filter(has).collect();
                let of = chosen.len();
                draft.chance.shuffle(&mut chosen);
                let least = if to_several { of.min(2) } else { 1 };
                chosen.truncate(least + draft.chance.index(of + 1 - least));
                chosen.sort_unstable();
                list.push(PlannedSend { sender, groups: chosen, bytes: draft.bytes() });
            }
        }
        draft.then(Step::Send(list));
    }
}

pub(super) fn outside_sender(draft: &mut Draft) {
    let outsider = draft.someone();
    let members = draft.others(&[outsider]);
    let everyone = draft.everyone();
    draft.group(members, everyone.clone());
    draft.start(everyone.clone());
    let count = draft.scale;
    draft.send(&everyone, count);
    draft.must_reach(Reach::From { node: outsider, count: count.div_ceil(2) });
}

/// A client is killed in mid-stream and comes back; its messages then have new names.
pub(super) fn outside_sender_kill(draft: &mut Draft) {
    let client = draft.someone();
    let members = draft.others(&[client]);
    let everyone = draft.everyone();
    draft.group(members.clone(), everyone.clone());
    draft.start(everyone.clone());
    let (count, few) = (draft.scale, draft.few());
    draft.send(&[client], few);
    draft.then(Step::Await(Condition::Answered { node: client, count: few }));
    let answered = few + draft.chance.between(1, WINDOW as u64 / 4);
    draft.send(&members, few);
    draft.send(&[client], WINDOW as u64);
    draft.then(Step::Await(Condition::Answered { node: client, count: answered }));
    draft.kill(client);
    draft.send_paced(&members, count.div_ceil(4));
    draft.start(vec![client]);
    draft.send(&everyone, count.div_ceil(2));
    draft.must_reach(Reach::KilledSending { node: client });
    draft.must_reach(Reach::SentAgain { node: client });
}
