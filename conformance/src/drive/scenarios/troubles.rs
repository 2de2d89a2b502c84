//! Scenarios in which members are suspended or partitioned.

use crate::drive::plan::{Condition, Draft, Step};
use crate::drive::reach::Reach;

/// The duration of a suspension: long enough that the other members notice it or have to wait.
const SUSPENDED_MS: u64 = 400;

/// The shortest duration of a partition, so that both sides act separately.
const PARTED_MS: u64 = 500;

/// Time limit for the majority to remove suspended or partitioned nodes; after that these nodes
/// come back anyway.
const REMOVED_MS_MAX: u64 = 4000;

/// Number of messages of usual sizes: more than the remaining pages of the disk can hold.
const FILLING: u64 = 40;

/// Time for the other members to react to a full disk.
const FULL_MS: u64 = 2000;

/// Time limit for returning nodes to halt, install a view, or catch up.
const GRACE_MS: u64 = 4000;

pub(super) fn stop_continue(draft: &mut Draft) {
    draft.one_group();
    let suspended = draft.someone();
    let (everyone, others) = (draft.everyone(), draft.others(&[suspended]));
    let count = draft.scale;
    draft.send(&everyone, count);
    let all = count * draft.nodes as u64;
    let before = draft.chance.between(all / 4, all / 2);
    draft.await_delivered(others[0], before);
    draft.then(Step::Stop(suspended));
    draft.send(&others, count.div_ceil(2));
    draft.then(Step::Wait { ms: SUSPENDED_MS });
    draft.then(Step::Continue(suspended));
    draft.send(&everyone, count.div_ceil(4));
    draft.must_reach(Reach::SentWhileStopped { node: suspended });
}

/// A member whose disk is full may continue or halt. After a restart it must still have everything
/// that it reported durable.
pub(super) fn full_disk(draft: &mut Draft) {
    draft.one_group();
    let victim = draft.someone();
    let (everyone, others) = (draft.everyone(), draft.others(&[victim]));
    let (count, few) = (draft.scale, draft.few());
    draft.send(&everyone, few);
    draft.await_delivered(victim, few);
    draft.then(Step::Fill(victim));
    draft.send(&[victim], few.div_ceil(4));
    // More than the remainder of a file's last page can hold.
    draft.send_paced(&others, count.max(FILLING));
    let condition = Condition::ViewWithout(vec![victim]);
    draft.then(Step::AwaitAtMost { condition, ms: FULL_MS });
    // The member is killed while its disk is full, so anything that it keeps in memory for later is
    // lost.
    draft.kill(victim);
    draft.then(Step::MakeRoom(victim));
    draft.send(&others, few);
    draft.start(vec![victim]);
    draft.send(&everyone, count.div_ceil(4));
    draft.must_reach(Reach::BackFromFull { node: victim });
}

/// Returns one round per node.
pub(super) fn each_node(nodes: usize) -> usize {
    nodes
}

/// Returns the number of nodes to cut off at once: as many as the others can tolerate.
fn minority_size(nodes: usize) -> usize {
    ((nodes - 1) / 2).max(1)
}

/// Returns the number of rounds until each node has been in the minority.
pub(super) fn each_minority(nodes: usize) -> usize {
    nodes.div_ceil(minority_size(nodes))
}

pub(super) fn stop_until_removed(draft: &mut Draft) {
    draft.one_group();
    let suspended = draft.shuffled()[draft.round];
    let (everyone, others) = (draft.everyone(), draft.others(&[suspended]));
    let (count, few) = (draft.scale, draft.few());
    draft.send(&everyone, few);
    draft.await_delivered(others[0], few * draft.nodes as u64 / 4);
    draft.then(Step::Stop(suspended));
    // The node finds these messages when it is resumed.
    draft.send(&[suspended], few);
    draft.send_paced(&others, count.div_ceil(2));
    let condition = Condition::ViewWithout(vec![suspended]);
    draft.then(Step::AwaitAtMost { condition, ms: REMOVED_MS_MAX });
    draft.then(Step::Continue(suspended));
    let condition = Condition::Resolved(vec![suspended]);
    draft.then(Step::AwaitAtMost { condition, ms: GRACE_MS });
    draft.send(&others, count.div_ceil(4));
    draft.must_reach(Reach::SentWhileStopped { node: suspended });
}

pub(super) fn partition(draft: &mut Draft) {
    draft.one_group();
    let shuffled = draft.shuffled();
    let size = minority_size(draft.nodes);
    let place = |one: usize| (draft.round * size + one) % draft.nodes;
    let minority: Vec<usize> = (0..size).map(|one| shuffled[place(one)]).collect();
    let (everyone, majority) = (draft.everyone(), draft.others(&minority));
    let count = draft.scale;
    draft.send(&everyone, count.div_ceil(2));
    let before = draft.chance.between(count / 8, count / 4);
    draft.await_delivered(majority[0], before * draft.nodes as u64);
    draft.then(Step::Part(minority.clone()));
    draft.send(&everyone, count.div_ceil(2));
    draft.then(Step::Wait { ms: PARTED_MS });
    let condition = Condition::ViewWithout(minority.clone());
    draft.then(Step::AwaitAtMost { condition, ms: REMOVED_MS_MAX });
    draft.then(Step::Heal);
    // The minority's next actions matter, because it may not know yet that it has been removed.
    let few = draft.few();
    draft.send(&everyone, few.div_ceil(4));
    let condition = Condition::Resolved(minority.clone());
    draft.then(Step::AwaitAtMost { condition, ms: GRACE_MS });
    draft.send(&majority, count.div_ceil(4));
    draft.must_reach(Reach::SentWhileParted { side: minority });
}
