//! Transfers of a schedule: each block reaches each member once, from a member that has it.

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use tramontane_core::ids::{Block, Rank, Step};
use tramontane_core::rdmc::{Algorithm, Schedule, ScheduleError, Shape};

/// Runs a schedule's steps, and returns the blocks that each member has at the end.
fn taken(schedule: Schedule, members: u16, blocks: u32) -> Vec<BTreeSet<Block>> {
    let mut has = vec![BTreeSet::new(); usize::from(members)];
    has[0].extend((0..blocks).map(Block));
    for step in (0..schedule.steps()).map(Step) {
        let before = has.clone();
        for sender in (0..members).map(Rank) {
            for hop in schedule.sent(sender, step).into_iter().flatten() {
                let what = format!("{schedule:?}: {sender} in {step:?}: {hop:?}");
                assert!(before[sender.index()].contains(&hop.block), "it lacks it: {what}");
                assert!(has[hop.peer.index()].insert(hop.block), "it comes twice: {what}");
                let received = schedule.received(hop.peer, step).expect(&what);
                assert_eq!((received.peer, received.block), (sender, hop.block), "{what}");
            }
        }
        for receiver in (0..members).map(Rank) {
            let count = has[receiver.index()].len() - before[receiver.index()].len();
            let expected = usize::from(schedule.received(receiver, step).is_some());
            assert_eq!(count, expected, "{schedule:?}: {receiver} in {step:?}");
        }
        // No other member takes part, and nothing happens later.
        assert_eq!(schedule.sent(Rank(members), step), [None, None]);
        assert_eq!(schedule.received(Rank(members), step), None);
    }
    let end = Step(schedule.steps());
    for rank in (0..members).map(Rank) {
        assert_eq!(schedule.sent(rank, end), [None, None], "{schedule:?}: {rank}");
        assert_eq!(schedule.received(rank, end), None, "{schedule:?}: {rank}");
    }
    has
}

/// RDM-1.1.
#[test]
fn each_block_reaches_each_member_once() {
    for members in 1..=13_u16 {
        for blocks in 1..=9_u32 {
            let mut algorithms = vec![
                Algorithm::Sequential,
                Algorithm::Interleaved,
                Algorithm::Chain,
                Algorithm::Tree,
                Algorithm::Pipeline,
            ];
            let racks = (1..=members).filter_map(NonZeroU16::new);
            algorithms.extend(racks.map(|racks| Algorithm::Hybrid { racks }));
            for algorithm in algorithms {
                let shape = Shape::new(members, blocks).expect("there are some");
                let schedule = Schedule::new(algorithm, shape).expect("no rack is empty");
                assert_eq!(schedule.algorithm(), algorithm);
                let has = taken(schedule, members, blocks);
                let all = usize::try_from(blocks).expect("few");
                assert!(has.iter().all(|one| one.len() == all), "{schedule:?}: {has:?}");
            }
        }
    }
}

/// RDM-1.1: the same for cubes in which a corner's number has more one bits.
#[test]
fn large_pipeline_delivers_each_block_to_all_once() {
    for members in [16, 17, 24, 29, 31, 32, 33, 48, 57, 63] {
        for blocks in [1, 2, 5, 11] {
            let shape = Shape::new(members, blocks).expect("there are some");
            let schedule = Schedule::new(Algorithm::Pipeline, shape).expect("a schedule");
            let has = taken(schedule, members, blocks);
            let all = usize::try_from(blocks).expect("few");
            assert!(has.iter().all(|one| one.len() == all), "{schedule:?}");
        }
    }
}

/// RDMC 4.3: the racks' pipelines begin in the step after the last leader receives its first block.
/// That takes as many steps as the number of racks has binary digits, or one fewer for a power of
/// two.
#[test]
fn rack_pipelines_begin_after_last_leaders_first_block() {
    for (racks, begins) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (7, 3), (8, 3), (9, 4)] {
        let shape = Shape::new(4 * racks, 6).expect("there are some");
        let algorithm = Algorithm::Hybrid { racks: NonZeroU16::new(racks).expect("not zero") };
        let schedule = Schedule::new(algorithm, shape).expect("four members a rack");
        let first = (0..racks).filter_map(|rack| schedule.first_received(Rank(4 * rack + 1)));
        assert_eq!(first.map(|(step, _)| step).min(), Some(Step(begins)), "{racks} racks");
    }
}

#[test]
fn empty_groups_messages_and_racks_have_no_schedule() {
    assert!(Shape::new(0, 1).is_none());
    assert!(Shape::new(1, 0).is_none());
    let racks = NonZeroU16::new(4).expect("not zero");
    let shape = Shape::new(3, 1).expect("there are some");
    assert_eq!(Schedule::new(Algorithm::Hybrid { racks }, shape), Err(ScheduleError::EmptyRack));
}
