//! Scenarios in which members join and leave on request, and some are killed meanwhile.

use crate::drive::plan::{Condition, Draft, Step};
use crate::drive::reach::Reach;

/// The longest delay between a request to leave and the kill of another member.
const LEAVING_MS: u64 = 1;

/// The longest delay between the start of a member's process and the kill of another member.
const JOINING_MS: u64 = 4;

pub(super) fn leave(draft: &mut Draft) {
    draft.one_group();
    let leaver = draft.someone();
    let (everyone, others) = (draft.everyone(), draft.others(&[leaver]));
    let count = draft.scale;
    draft.send(&everyone, count.div_ceil(2));
    draft.then(Step::Leave(leaver));
    draft.send_paced(&others, count);
    draft.then(Step::Await(Condition::Ended(leaver)));
    draft.send(&others, count.div_ceil(4));
    draft.must_reach(Reach::LeftUnderLoad { node: leaver });
}

pub(super) fn join(draft: &mut Draft) {
    let everyone = draft.everyone();
    draft.group(everyone.clone(), everyone.clone());
    let joiner = draft.someone();
    let others = draft.others(&[joiner]);
    draft.start(others.clone());
    let count = draft.scale;
    draft.send(&others, count);
    draft.await_delivered(others[0], count.div_ceil(4));
    draft.then(Step::Start(vec![joiner]));
    draft.send_paced(&others, count);
    draft.then(Step::Await(Condition::Ready(vec![joiner])));
    draft.send(&everyone, count.div_ceil(2));
    draft.must_reach(Reach::JoinedUnderLoad { node: joiner });
}

pub(super) fn kill_during_leave(draft: &mut Draft) {
    draft.one_group();
    let shuffled = draft.shuffled();
    let (leaver, victim) = (shuffled[0], shuffled[1]);
    let others = draft.others(&[leaver, victim]);
    let (everyone, count, few) = (draft.everyone(), draft.scale, draft.few());
    draft.send(&everyone, few);
    draft.send(&others, count);
    draft.await_delivered(others[0], count.div_ceil(4));
    draft.then(Step::Leave(leaver));
    let ms = draft.chance.between(0, LEAVING_MS);
    draft.then(Step::Wait { ms });
    draft.kill(victim);
    draft.send_paced(&others, count.div_ceil(2));
    draft.then(Step::Await(Condition::Ended(leaver)));
    draft.must_reach(Reach::KilledBeforeViewWithout { node: victim, gone: leaver });
}

pub(super) fn kill_during_join(draft: &mut Draft) {
    let everyone = draft.everyone();
    draft.group(everyone.clone(), everyone);
    let shuffled = draft.shuffled();
    let (joiner, victim) = (shuffled[0], shuffled[1]);
    let (members, others) = (draft.others(&[joiner]), draft.others(&[joiner, victim]));
    draft.start(members.clone());
    let (count, few) = (draft.scale, draft.few());
    draft.send(&members, few);
    draft.send(&others, count);
    draft.await_delivered(others[0], count.div_ceil(4));
    draft.then(Step::Start(vec![joiner]));
    let ms = draft.chance.between(0, JOINING_MS);
    draft.then(Step::Wait { ms });
    draft.kill(victim);
    draft.send_paced(&others, count.div_ceil(2));
    draft.then(Step::Await(Condition::Ready(vec![joiner])));
    let left = draft.others(&[victim]);
    draft.send(&left, count.div_ceil(4));
    draft.must_reach(Reach::KilledBeforeViewWith { node: victim, joined: joiner });
}
