//! Several groups, and senders from outside.

use crate::drive::plan::{Draft, Sending, Step};
use crate::drive::reach::Reach;

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
                list.push(Sending { sender, groups: vec![group], bytes: draft.bytes() });
            }
        }
    }
    draft.then(Step::Send(list));
    draft.must_reach(Reach::GroupsInterleave);
}

/// Three groups in a ring, each with a member of its own only with one neighbour and one in common
/// with the other: the smallest shape in which the orders of three groups can contradict each
/// other. Further nodes are in two of them.
pub(super) fn across(draft: &mut Draft) {
    let shuffled = draft.shuffled();
    let mut groups = vec![Vec::new(); 3];
    for (place, &node) in shuffled.iter().enumerate() {
        groups[place % 3].push(node);
        groups[(place + 1) % 3].push(node);
    }
    // One node is everywhere if there are enough, so that messages for all three have a sender.
    if let Some(&hub) = shuffled.get(3) {
        let missing = groups.iter_mut().find(|members| !members.contains(&hub));
        missing.into_iter().for_each(|members| members.push(hub));
    }
    for members in &groups {
        draft.group(members.clone(), members.clone());
    }
    draft.start(draft.everyone());
    let mut list = Vec::new();
    for _ in 0..draft.scale {
        for sender in 0..draft.nodes {
            let own: Vec<usize> = (0..3).filter(|group| groups[*group].contains(&sender)).collect();
            let mut chosen = own.clone();
            draft.chance.shuffle(&mut chosen);
            chosen.truncate(1 + draft.chance.index(own.len()));
            chosen.sort_unstable();
            list.push(Sending { sender, groups: chosen, bytes: draft.bytes() });
        }
    }
    draft.then(Step::Send(list));
    draft.must_reach(Reach::AcrossGroups { count: draft.scale.div_ceil(4) });
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
