//! Failures at every point of a small run: a replica crashes, or pauses for so long that another
//! replica leads, and then resumes. Covered are every pair of such faults in one group of three
//! with two messages, and every single fault in two groups.
//!
//! A point is one event: a step of a process, or a write that lands. The ordinary test run omits
//! most points, and each seed tries different ones. `TRAMONTANE_POINTS=all` tries all points of the
//! single faults, and many more of the pairs, which `TRAMONTANE_SEED` moves.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{Destinations, ReplicaId};

use super::judge::{missing, safety};
use super::world::{Settings, World};

#[derive(Clone, Copy, Debug)]
enum ReplicaFault {
    /// The replica returns after a while, without its memory.
    Crash(ReplicaId),
    /// The replica pauses for longer than the others wait for it.
    Pause(ReplicaId),
}

/// Number of events between a crash and the return.
const AWAY: usize = 700;

/// Length of a pause in virtual time: longer than the suspicion timeout and a campaign.
const PAUSE_NS: u64 = 400_000;

/// First seed whose messages have payloads by reference.
const BY_REFERENCE: u64 = 3;

fn run(parents: &[Option<u16>], seed: u64, faults: &[(usize, ReplicaFault)]) -> usize {
    let references_from = if seed >= BY_REFERENCE { 8 } else { 0 };
    let limits = Settings { log_entries: 8, window: 2, references_from, ..Settings::default() };
    let settings = Settings { seed, clients: 1, ..limits };
    let mut world = World::new(parents, 3, settings);
    world.network.borrow_mut().lands_whole = true;
    let client = ClientNumber(0);
    let to = world.overlay.all();
    let mut returns: Vec<(usize, ReplicaId)> = Vec::new();
    let (mut sent, mut length) = (0, 0);
    let last = faults.iter().map(|(at, _)| *at).max().unwrap_or(0) + AWAY + 1;
    for at in 0..40_000 {
        // The first message goes to all groups, and the second only to group 0.
        let due = sent < 2 && at >= 200 + 150 * sent;
        let to = if sent == 0 { to } else { Destinations::of(GroupId(0)) };
        if due && world.multicast(client, to, 24).is_ok() {
            sent += 1;
        }
        for (_, fault) in faults.iter().filter(|(point, _)| *point == at) {
            match *fault {
                ReplicaFault::Crash(id) if world.may_crash(id) => {
                    world.crash_replica(id);
                    returns.push((at + AWAY, id));
                }
                ReplicaFault::Crash(_) => {}
                ReplicaFault::Pause(id) => world.pause(id, world.now + PAUSE_NS),
            }
        }
        for (_, id) in returns.extract_if(.., |(due, _)| *due <= at) {
            world.start_replica(id, false);
        }
        world.advance();
        let looks = at % 32 == 0 && at > last && sent == 2;
        if looks && missing(&world).is_empty() {
            length = at;
            break;
        }
    }
    assert_eq!(safety(&world), Vec::<String>::new(), "seed {seed}, {faults:?}");
    assert!(length > 0, "seed {seed}, {faults:?}: {:?}", missing(&world));
    length - last
}

fn all_points() -> bool {
    std::env::var("TRAMONTANE_POINTS").is_ok_and(|points| points == "all")
}

fn faults_of(groups: u16) -> Vec<ReplicaFault> {
    let ids = (0..groups).flat_map(|group| {
        (0..3).map(move |rank| ReplicaId { group: GroupId(group), rank: Rank(rank) })
    });
    ids.flat_map(|id| [ReplicaFault::Crash(id), ReplicaFault::Pause(id)]).collect()
}

/// Number of events until both messages have been delivered everywhere if there are no faults.
const POINTS: usize = 700;

#[test]
fn group_tolerates_every_pair_of_faults() {
    let stride = if all_points() { 13 } else { 197 };
    let moved = std::env::var("TRAMONTANE_SEED").ok().and_then(|seed| seed.parse().ok());
    let moved: usize = moved.unwrap_or(0);
    let mut runs = 0;
    for seed in 1..=BY_REFERENCE {
        assert!(run(&[None], seed, &[]) < POINTS * 2);
        for (one, first) in faults_of(1).into_iter().enumerate() {
            for at in ((moved + seed as usize * 31 + one * 13) % stride..POINTS).step_by(stride) {
                run(&[None], seed, &[(at, first)]);
                for (other, second) in faults_of(1).into_iter().enumerate() {
                    for then in (at + 1 + other..POINTS + AWAY).step_by(stride * 2 + 1) {
                        run(&[None], seed, &[(at, first), (then, second)]);
                        runs += 1;
                    }
                }
            }
        }
    }
    eprintln!("{runs} pairs");
    assert!(runs > 100);
}

#[test]
fn two_groups_survive_every_single_fault() {
    let stride = if all_points() { 1 } else { 61 };
    for seed in 1..=BY_REFERENCE {
        for (one, fault) in faults_of(2).into_iter().enumerate() {
            for at in ((seed as usize * 5 + one) % stride..POINTS * 2).step_by(stride) {
                run(&[None, Some(0)], seed, &[(at, fault)]);
            }
        }
    }
}
