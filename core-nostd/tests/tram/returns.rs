//! A returning replica finds a leader, and does not depose it.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{Destinations, ReplicaId, Timestamp};

use super::judge::{missing, safety};
use super::world::{Settings, World};

const GROUP: GroupId = GroupId(0);
const TAIL: usize = 1;
const DECIDED: usize = 2;

/// Lets clients multicast while the world runs, until a condition holds.
fn load_until(world: &mut World, holds: impl Fn(&World) -> bool) {
    for _ in 0..4_000 {
        if holds(world) {
            return;
        }
        // A full window is not an error.
        let _ = world.multicast(ClientNumber(0), Destinations::of(GROUP), 8);
        world.run(50);
    }
    panic!("seed {}: it does not come to that", world.settings.seed);
}

/// Returns the timestamp of the group's leader, and the highest that any replica has promised.
fn terms(world: &World) -> (Option<Timestamp>, Option<Timestamp>) {
    let promised = |id: &ReplicaId| Some(world.replicas.get(id)?.replica.promised());
    let highest = world.ids().iter().filter_map(promised).max();
    (world.leader(GROUP).as_ref().and_then(promised), highest)
}

#[test]
fn returning_leader_does_not_depose_current_leader() {
    let mut later = 0;
    for seed in 1..=40 {
        // The replica counts again sooner than its peers' next heartbeats.
        let settings = Settings { seed, heartbeat_ns: 100_000, ..Settings::default() };
        let mut world = World::new(&[None], 3, settings);
        load_until(&mut world, |world| world.leader(GROUP).is_some());
        world.run(20_000);
        let killed = world.leader(GROUP).expect("a leader");
        world.crash_replica(killed);
        load_until(&mut world, |world| world.leader(GROUP).is_some());
        world.run(5_000);
        let before = terms(&world);
        assert_eq!(before.0, before.1, "seed {seed}");
        world.start_replica(killed, false);
        load_until(&mut world, |world| world.replicas[&killed].replica.is_voter());
        world.run(20_000);
        let (leader, highest) = terms(&world);
        assert_eq!(leader, highest, "seed {seed}");
        let rounds = |terms: Option<Timestamp>| terms.map_or(0, Timestamp::round);
        later += rounds(highest) - rounds(before.1);
        assert!(world.run_until(200_000, |world| missing(world).is_empty()), "seed {seed}");
        assert_eq!(safety(&world), Vec::<String>::new(), "seed {seed}");
        assert!(killed.rank < Rank(3));
    }
    assert_eq!(later, 0, "campaigns after a return");
}

/// TRM-5: replicas 3 and 4 have both returned, in incarnation 2. Replica 4 finds the admission of
/// replica 3 in the log. It must not count because of that, since it may lack entries that its
/// earlier incarnation had shown.
#[test]
fn returning_replica_needs_its_own_admission() {
    let mut world = World::new(&[None], 5, Settings::default());
    load_until(&mut world, |world| world.leader(GROUP).is_some());
    let ids = world.ids();
    let (third, fourth) = (ids[3], ids[4]);
    for id in [third, fourth] {
        world.crash_replica(id);
    }
    world.run(2_000);
    world.start_replica(third, false);
    world.start_replica(fourth, false);
    // Replica 4 has its snapshot, and hears no other process.
    let clients = [ClientNumber(0)];
    world.allow_only(&ids[..4], &clients);
    assert!(!world.replicas[&fourth].replica.is_voter());
    load_until(&mut world, |world| world.replicas[&third].replica.is_voter());
    // No more messages are sent, so the next entry is the admission of replica 4.
    let is_quiet = |world: &World| {
        let first = world.log_control(ids[0]);
        first[TAIL] == first[DECIDED] && ids[1..4].iter().all(|id| world.log_control(*id) == first)
    };
    assert!(world.run_until(200_000, is_quiet));
    let tail = world.log_control(ids[0])[TAIL];
    assert!(world.replicas[&fourth].replica.delivered() < tail);
    world.network.borrow_mut().heal();
    for _ in 0..200_000 {
        world.advance();
        let replica = &world.replicas[&fourth].replica;
        if replica.is_voter() {
            assert!(replica.delivered() > tail);
            break;
        }
    }
    assert!(world.replicas[&fourth].replica.is_voter());
    assert!(world.run_until(200_000, |world| missing(world).is_empty()));
    assert_eq!(safety(&world), Vec::<String>::new());
}

/// TRM-5: both followers receive a snapshot that contains nothing new to them. Their logs are as
/// complete as before, so one of them leads when their leader is lost.
#[test]
fn outdated_snapshot_does_not_prevent_leading() {
    let mut world = World::new(&[None], 3, Settings::default());
    let ids = world.ids();
    load_until(&mut world, |world| world.leader(GROUP).is_some());
    let is_quiet = |world: &World| {
        let delivered = |id: &ReplicaId| world.replicas[id].replica.delivered();
        missing(world).is_empty() && ids.iter().all(|id| delivered(id) == delivered(&ids[0]))
    };
    assert!(world.run_until(200_000, is_quiet));
    let leader = world.leader(GROUP).expect("a leader");
    let snapshot = world.snapshot_of(leader);
    let taken: Vec<bool> = ids.iter().map(|id| world.give(*id, &snapshot)).collect();
    world.crash_replica(leader);
    assert!(world.run_until(200_000, |world| world.leader(GROUP).is_some()));
    assert_eq!(taken, [false; 3]);
    assert_eq!(safety(&world), Vec::<String>::new());
}
