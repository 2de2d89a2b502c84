//! The module `restart`: nodes that answer, with and without a promise, and the verdict.

use core::hint::black_box;

use super::debug;
use tramontane_core::ids::*;
use tramontane_core::restart::*;

static MEMBERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];
static NEXT: [NodeId; 2] = [NodeId(2), NodeId(3)];
static DAMAGED: [(DurableCount, DurableCount); 2] =
    [(DurableCount(2), DurableCount(4)), (DurableCount(6), DurableCount(7))];

pub fn call() {
    for count in 0..black_box(4) {
        for promised in [false, true] {
            ask(black_box(count), black_box(promised));
        }
    }
}

/// Requests a verdict with `count` answering nodes.
fn ask(count: usize, promised: bool) {
    let decided = KnownView { id: black_box(ViewId(4)), members: black_box(&MEMBERS) };
    let next = KnownView { id: decided.id.next(), members: black_box(&NEXT) };
    let ballot = PromiseBallot { attempt: black_box(1), leader: black_box(2) };
    let ends = [black_box(Some(DurableCount(5)))];
    let log = |end: u64| {
        let end = LogEnd { view: black_box(ViewId(4)), end: DurableCount(end) };
        let note = LogNote {
            is_of_another: black_box(false),
            end: black_box(DurableCount(5)),
            majority: black_box(DurableCount(4)),
            everywhere: black_box(DurableCount(3)),
        };
        let (first, damaged) = (black_box(DurableCount(1)), black_box(&DAMAGED[..]));
        Some(LogState { first, end, damaged, note })
    };
    let logs = [[log(black_box(8))], [log(black_box(5))], [None]];
    let answer = |at: usize, node: u32| Answer {
        node: black_box(NodeId(node)),
        decided: black_box(Some(decided)),
        promise: if promised { Some(Promise { ballot, next, ends: &ends }) } else { None },
        heard: black_box(ballot),
        logs: logs.get(at).map_or(&[], |logs| &logs[..]),
        with_less: black_box(Some(ViewId(3))),
    };
    let answers = [answer(0, 1), answer(1, 2), answer(2, 3)];
    for answer in &answers {
        black_box(answer.is_new());
    }
    let subgroups: [&[NodeId]; 1] = [black_box(&MEMBERS)];
    let restart = Restart::new(answers.get(..count).unwrap_or(&[]), &subgroups);
    for restart in [restart, restart.with_less()] {
        match black_box(restart.verdict()) {
            Verdict::NoGroup => {}
            Verdict::Wait(wait) => {
                debug(wait);
                restart.missing(wait).for_each(|node| debug(node));
                restart.uncounted(wait).for_each(|node| debug(node));
            }
            Verdict::Go(plan) => {
                debug((plan, plan.next_id()));
                restart.next_members(&plan).for_each(|node| debug(node));
                restart.participants(&plan).for_each(|node| debug(node));
                debug(restart.has_intact(&plan, black_box(0), black_box(DurableCount(3))));
                if let Ok(Some(taken)) = restart.log_of(&plan, black_box(0)) {
                    debug((taken, restart.cut_of(&taken, black_box(NodeId(1)), black_box(0))));
                }
            }
        }
    }
}
