//! Runs without faults.

use tramontane_core::ids::{ClientNumber, GroupId};
use tramontane_core::tram::{Destinations, SendError};

use super::judge::{missing, safety};
use super::world::{Settings, World};

pub fn some_groups(world: &mut World) -> Destinations {
    let groups = world.overlay.len();
    let count = 1 + world.random.below(groups);
    let mut set = Destinations::default();
    for _ in 0..count {
        set = set.with(GroupId(world.random.below(groups) as u16));
    }
    set
}

fn calm_run(parents: &[Option<u16>], replicas: u16, settings: Settings, messages: usize) {
    let mut world = World::new(parents, replicas, settings);
    let mut left = messages;
    while left > 0 {
        let client = ClientNumber(world.random.below(usize::from(settings.clients)) as u16);
        let (groups, length) = (some_groups(&mut world), world.random.below(201));
        if world.multicast(client, groups, length).is_ok() {
            left -= 1;
        }
        world.run(20);
        assert!(
            world.now < 40_000_000,
            "seed {}: {left} are left: {:?} {:?}",
            settings.seed,
            missing(&world),
            safety(&world)
        );
    }
    let is_over = world.run_until(400_000, |world| missing(world).is_empty());
    assert_eq!(safety(&world), Vec::<String>::new(), "seed {}", settings.seed);
    assert!(is_over, "seed {}: {:?}", settings.seed, missing(&world));
    let before = world.idle_steps;
    world.run(2_000);
    assert!(world.idle_steps > before, "between heartbeats there is nothing to do");
}

#[test]
fn single_replica_group_delivers_all_messages() {
    calm_run(&[None], 1, Settings::default(), 50);
}

#[test]
fn three_replica_group_delivers_all_messages() {
    for seed in 1..20 {
        calm_run(&[None], 3, Settings { seed, ..Settings::default() }, 60);
    }
}

#[test]
fn groups_deliver_all_messages_by_reference() {
    for seed in 1..10 {
        let settings = Settings { seed, references_from: 40, ..Settings::default() };
        calm_run(&[None, Some(0), Some(1)], 3, settings, 60);
        calm_run(&[None], 3, Settings { batching: false, ..settings }, 30);
    }
}

/// The clients check each answer. Many are sent in one step, so that they need several lists.
#[test]
fn answers_of_any_length_reach_clients() {
    for seed in 1..10 {
        let settings = Settings { seed, answer_max: 20, window: 24, ..Settings::default() };
        calm_run(&[None, Some(0), Some(0)], 3, settings, 120);
    }
}

#[test]
fn unbatched_leaders_deliver_all_messages() {
    for seed in 1..5 {
        calm_run(
            &[None, Some(0)],
            3,
            Settings { seed, batching: false, ..Settings::default() },
            40,
        );
    }
}

/// TRM-3: without batching, as in the paper, an entry waits until the one before it is decided.
#[test]
fn unbatched_leader_keeps_one_entry_undecided() {
    let settings = Settings { batching: false, ..Settings::default() };
    let mut world = World::new(&[None], 3, settings);
    assert!(world.run_until(100_000, |world| world.leader(GroupId(0)).is_some()));
    let leader = world.leader(GroupId(0)).expect("a leader");
    let mut most = 0;
    for _ in 0..20_000 {
        let _ = world.multicast(ClientNumber(0), Destinations::of(GroupId(0)), 8);
        world.advance();
        let [_, tail, decided] = world.log_control(leader);
        most = most.max(tail - decided);
    }
    assert_eq!(most, 1);
    assert!(world.run_until(100_000, |world| missing(world).is_empty()));
    assert_eq!(world.leader(GroupId(0)), Some(leader));
}

/// A step always takes at least one payload, however few bytes it may copy.
#[test]
fn zero_byte_copy_limit_still_allows_one_message() {
    for references_from in [0, 40] {
        let settings = Settings { run_bytes: 0, references_from, ..Settings::default() };
        calm_run(&[None, Some(0)], 3, settings, 20);
    }
}

#[test]
fn group_tree_delivers_all_messages() {
    for seed in 1..10 {
        let settings = Settings { seed, clients: 3, ..Settings::default() };
        calm_run(&[None, Some(0), Some(0), Some(1)], 3, settings, 60);
    }
}

#[test]
fn client_that_left_can_register_again() {
    let mut world = World::new(&[None, Some(0)], 3, Settings::default());
    let number = ClientNumber(0);
    for _ in 0..3 {
        for _ in 0..10 {
            let groups = some_groups(&mut world);
            let _ = world.multicast(number, groups, 8);
            world.run(2_000);
        }
        world.leave(number);
        let to = Destinations::of(GroupId(0));
        assert_eq!(world.multicast(number, to, 8), Err(SendError::Closed));
        assert!(
            world.run_until(400_000, |world| world.has_left(number) && missing(world).is_empty())
        );
        world.crash_client(number);
        world.start_client(number);
    }
    assert_eq!(safety(&world), Vec::<String>::new());
}

/// A client that leaves at once remains registered for the messages that it has multicast.
#[test]
fn messages_sent_before_leaving_are_delivered() {
    for seed in 1..20 {
        // In a short log, the client's last entry has to wait for room.
        let log_entries = 2 << (seed % 4);
        let settings = Settings { seed, log_entries, ..Settings::default() };
        let mut world = World::new(&[None, Some(0)], 3, settings);
        let number = ClientNumber(0);
        if seed % 2 == 0 {
            // Both groups have registered the client.
            for group in [0, 1] {
                let to = Destinations::of(GroupId(group));
                world.multicast(number, to, 8).expect("there is room");
            }
            assert!(world.run_until(100_000, |world| missing(world).is_empty()));
        }
        for _ in 0..settings.window {
            let groups = some_groups(&mut world);
            world.multicast(number, groups, 8).expect("there is room");
        }
        world.leave(number);
        assert!(!world.has_left(number), "nothing is sent yet");
        assert!(world.run_until(400_000, |world| world.has_left(number)));
        world.crash_client(number);
        assert!(world.run_until(400_000, |world| {
            let ids = world.ids();
            world.sent.iter().all(|(message, sent)| {
                let mut to = ids.iter().filter(|id| sent.destinations.contains(id.group));
                to.all(|id| world.has_delivered(*id, *message))
            })
        }));
        assert_eq!(safety(&world), Vec::<String>::new());
    }
}

/// A registration takes an entry of the log, and is kept while its client is connected.
#[test]
fn client_that_sends_nothing_is_not_registered() {
    let mut world = World::new(&[None], 3, Settings::default());
    let leads = |world: &World| world.leader(GroupId(0)).map(|id| world.log_control(id)[1]);
    assert!(world.run_until(200_000, |world| leads(world).is_some()));
    world.run(20_000);
    assert_eq!(leads(&world), Some(0));
}
