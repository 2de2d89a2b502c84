//! A group with more members than one step can read: every member's failure report is still read.

use super::member::{Messages, ROOT, VIEW, Willing, setup};
use tramontane_core::fabric::{LossCause, Promises, ViewMemory};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{BlockGroup, Cause, Failure, Outcome};

/// A step reads the cells of 64 members.
const MEMBERS: u16 = 150;

/// Offset, in a member's line, of the cell that says that the group failed.
const FAILED: usize = 8;

/// Opens a group of `count` members.
fn with_members(
    count: u16,
    own: Rank,
    test: impl FnOnce(BlockGroup<'_>, &mut Willing, &mut Messages, &dyn Fn(Rank, u64)),
) {
    let lines: Vec<[Line; 1]> = (0..count).map(|_| Default::default()).collect();
    let nodes: Vec<NodeId> = (1..).map(NodeId).take(lines.len()).collect();
    let ranks: Vec<Rank> = (0..count).map(Rank).collect();
    let rows: Vec<Row<'_>> = lines.iter().map(|lines| Row::from_lines(lines)).collect();
    let writer = |rank: Rank| RowWriter::from_lines(&lines[rank.index()]);
    let memory = ViewMemory { own, members: &nodes, row: writer(own), rows: &rows };
    let mut fabric = Willing::new(Promises::WRITE_ORDER);
    let mut words = [0; 4];
    let setup = setup(&ranks, Algorithm::Chain);
    let group = BlockGroup::open(setup, &memory, &fabric, &mut words).expect("a group");
    let say_failed =
        |rank: Rank, value| writer(rank).cell(FAILED).expect("in the line").publish(value);
    test(group, &mut fabric, &mut Messages::default(), &say_failed);
}

/// Returns the number of steps after which member 1 knows that the group has failed, if `said_by`
/// reports the root's loss before the first step. A step that knows of no failure and has not read
/// all cells must report more work.
fn steps_until_heard(said_by: Rank) -> usize {
    let mut heard = 0;
    with_members(MEMBERS, Rank(1), |mut group, fabric, messages, say_failed| {
        // The receives are posted, and all cells have been read once.
        for _ in 0..3 {
            group.step(fabric, messages);
        }
        // The lowest bit, the cause, and the rank of the member that left.
        say_failed(said_by, 1 | (2 << 8));
        for steps in 1..10 {
            let progress = group.step(fabric, messages);
            if let Some(outcome) = group.outcome() {
                let cause = Cause::Lost(LossCause::Left);
                assert_eq!(outcome, Outcome::Failed(Failure { member: ROOT, cause }));
                heard = steps;
                return;
            }
            assert!(
                progress.has_more,
                "{said_by} was not looked at, and nothing wakes this member"
            );
        }
        panic!("{said_by} is never heard, in view {VIEW}");
    });
    heard
}

/// RDM-6.
#[test]
fn failure_reports_are_read_within_three_steps() {
    let heard = [0, 2, 63, 64, 127, 128, 149].map(|rank| steps_until_heard(Rank(rank)));
    assert_eq!(heard, [1, 1, 1, 2, 2, 3, 3]);
}

/// A step handles at most 32 members, including the local one, and reports whether it omitted any.
#[test]
fn root_announces_the_close_in_several_steps() {
    for (count, posts) in [(31, &[30][..]), (32, &[31]), (33, &[31, 1]), (64, &[31, 32])] {
        with_members(count, ROOT, |mut group, fabric, messages, _| {
            group.close().expect("it is the root's to close");
            for (step, posted) in posts.iter().enumerate() {
                fabric.posts.clear();
                let progress = group.step(fabric, messages);
                assert_eq!(fabric.posts.len(), *posted, "{count} members, step {step}");
                assert_eq!(progress.has_more, step + 1 < posts.len(), "{count} members");
            }
            assert!(group.step(fabric, messages).is_idle(), "{count} members");
        });
    }
}
