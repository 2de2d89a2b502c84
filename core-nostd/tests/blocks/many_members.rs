//! A group of more members than one step reads the cells of: each is heard all the same.

use super::member::{Messages, ROOT, VIEW, Willing, setup};
use tramontane_core::fabric::{LossCause, Promises, ViewMemory};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{BlockGroup, Cause, Failure, Outcome};

/// A step reads of 64.
const MEMBERS: u16 = 150;

/// The place in a member's line where it says that the group failed.
const FAILED: usize = 8;

/// After how many steps of member 1 the group has failed, if `said_by` says so of the root before
/// the first. A step that knows of no failure, and has not read all cells, has more to do.
fn steps_until_heard(said_by: Rank) -> usize {
    let lines: Vec<[Line; 1]> = (0..MEMBERS).map(|_| Default::default()).collect();
    let nodes: Vec<NodeId> = (1..).map(NodeId).take(lines.len()).collect();
    let ranks: Vec<Rank> = (0..MEMBERS).map(Rank).collect();
    let rows: Vec<Row<'_>> = lines.iter().map(|lines| Row::from_lines(lines)).collect();
    let writer = |rank: Rank| RowWriter::from_lines(&lines[rank.index()]);
    let memory = ViewMemory { own: Rank(1), members: &nodes, row: writer(Rank(1)), rows: &rows };
    let mut fabric = Willing::new(Promises::WRITE_ORDER);
    let (mut words, mut messages) = ([0; 4], Messages::default());
    let setup = setup(&ranks, Algorithm::Chain);
    let mut group = BlockGroup::open(setup, &memory, &fabric, &mut words).expect("a group");
    // Its receives are posted, and all cells were read once.
    for _ in 0..3 {
        group.step(&mut fabric, &mut messages);
    }
    // The lowest bit, the cause, and the rank of the member that left.
    writer(said_by).cell(FAILED).expect("in the line").publish(1 | (2 << 8));
    for steps in 1..10 {
        let progress = group.step(&mut fabric, &mut messages);
        if let Some(outcome) = group.outcome() {
            let cause = Cause::Lost(LossCause::Left);
            assert_eq!(outcome, Outcome::Failed(Failure { member: ROOT, cause }));
            return steps;
        }
        assert!(progress.has_more, "{said_by} was not looked at, and nothing wakes this member");
    }
    panic!("{said_by} is never heard, in view {VIEW}");
}

/// RDM-6.
#[test]
fn each_of_many_members_is_heard_within_the_steps_that_read_all_of_them() {
    let heard = [0, 2, 63, 64, 127, 128, 149].map(|rank| steps_until_heard(Rank(rank)));
    assert_eq!(heard, [1, 1, 1, 2, 2, 3, 3]);
}
