//! Members are suspended or parted.

use crate::drive::plan::{Condition, Draft, Step};
use crate::drive::reach::Reach;

/// How long a member is suspended: long enough that others notice, or wait for it.
const SUSPENDED_MS: u64 = 400;

/// How long nodes stay parted at least, so that both sides act on their own.
const PARTED_MS: u64 = 500;

/// How long the majority has to get over the others before the cut is healed all the same.
const PARTED_MS_MAX: u64 = 4000;

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

pub(super) fn partition(draft: &mut Draft) {
    draft.one_group();
    let mut minority = draft.shuffled();
    minority.truncate((draft.nodes - 1) / 2);
    let (everyone, majority) = (draft.everyone(), draft.others(&minority));
    let count = draft.scale;
    draft.send(&everyone, count.div_ceil(2));
    let before = draft.chance.between(count / 8, count / 4);
    draft.await_delivered(majority[0], before * draft.nodes as u64);
    draft.then(Step::Part(minority.clone()));
    draft.send(&everyone, count.div_ceil(2));
    draft.then(Step::Wait { ms: PARTED_MS });
    let condition = Condition::ViewWithout(minority.clone());
    draft.then(Step::AwaitAtMost { condition, ms: PARTED_MS_MAX });
    draft.then(Step::Heal);
    draft.send(&majority, count.div_ceil(4));
    draft.must_reach(Reach::SentWhileParted { side: minority });
}
