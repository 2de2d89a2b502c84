//! Long messages by reference, and how their client sends them to the replicas.

use std::collections::BTreeSet;

use tramontane_core::ids::{ClientNumber, GroupId};
use tramontane_core::tram::Destinations;

use super::judge::{missing, safety};
use super::world::{Settings, World};

/// Length in bytes, above the number of bytes that a client sends in one step.
const LENGTH: u32 = 20_000;

/// Opens a group of three that has a leader, and three idle clients.
fn three_clients() -> World {
    let settings =
        Settings { clients: 3, references_from: 40, payload_max: LENGTH, ..Settings::default() };
    let mut world = World::new(&[None], 3, settings);
    let is_calm = |world: &World| {
        let is_silent = |client: &ClientNumber| world.written_to(*client).is_empty();
        world.leader(GroupId(0)).is_some() && world.clients.keys().all(is_silent)
    };
    assert!(world.run_until(100_000, is_calm));
    world
}

#[test]
fn clients_write_long_messages_to_different_replicas_first() {
    let mut world = three_clients();
    let clients: Vec<ClientNumber> = world.clients.keys().copied().collect();
    let mut begun = BTreeSet::new();
    for client in clients {
        let to = Destinations::of(GroupId(0));
        world.multicast(client, to, LENGTH as usize).expect("there is room");
        world.step_client(client);
        let first = world.written_to(client);
        assert_eq!(first.len(), 1, "{client}: {first:?}");
        begun.extend(first);
        for count in 2..=3 {
            world.step_client(client);
            assert_eq!(world.written_to(client).len(), count, "{client}");
        }
    }
    assert_eq!(begun.len(), 3, "all three ports are busy from the beginning");
    assert!(world.run_until(400_000, |world| missing(world).is_empty()), "{:?}", missing(&world));
    assert_eq!(safety(&world), Vec::<String>::new());
    assert!(world.references >= 3);
}

#[test]
fn replica_copies_one_long_message_per_step() {
    let mut world = three_clients();
    let clients: Vec<ClientNumber> = world.clients.keys().copied().collect();
    for client in &clients {
        world.multicast(*client, Destinations::of(GroupId(0)), LENGTH as usize).expect("room");
        for _ in 0..3 {
            world.step_client(*client);
        }
    }
    while world.network.borrow_mut().deliver() {}
    assert_eq!(world.references, 0, "all is there, and no replica has looked");
    assert!(world.run_until(400_000, |world| missing(world).is_empty()), "{:?}", missing(&world));
    assert_eq!(safety(&world), Vec::<String>::new());
    assert_eq!(world.references, 3);
    assert_eq!(world.most_copied, u64::from(LENGTH));
}

/// A list has room for two bodies, or for three slots.
#[test]
fn client_writes_several_short_messages_per_list() {
    for (messages, lists) in [(2, 1 + 1), (4, 2 + 2)] {
        let settings = Settings { clients: 1, references_from: 40, ..Settings::default() };
        let mut world = World::new(&[None], 3, settings);
        assert!(world.run_until(100_000, |world| world.leader(GroupId(0)).is_some()));
        let client = ClientNumber(0);
        let before = world.clients_lists;
        for _ in 0..messages {
            world.multicast(client, Destinations::of(GroupId(0)), 100).expect("there is room");
        }
        world.step_client(client);
        assert_eq!(world.clients_lists - before, 3 * lists, "to three replicas");
        let is_over = world.run_until(400_000, |world| missing(world).is_empty());
        assert!(is_over, "{:?}", missing(&world));
        assert_eq!(safety(&world), Vec::<String>::new());
        assert_eq!(world.references, messages);
    }
}

/// Sends a stream of messages to a group with one slow follower. Returns the duration, and the
/// number of payloads that the leader carried to followers.
fn with_a_slow_follower(references_from: u32, seed: u64) -> (u64, u32) {
    let heartbeat_ns = 50_000;
    let settings =
        Settings { clients: 1, references_from, seed, heartbeat_ns, ..Settings::default() };
    let mut world = World::new(&[None], 3, settings);
    assert!(world.run_until(1_000_000, |world| world.leader(GroupId(0)).is_some()));
    let leader = world.leader(GroupId(0)).expect("it has one");
    let slow = *world.replicas.keys().find(|id| **id != leader).expect("there are three");
    // Much shorter than the time that peers wait for a heartbeat.
    let pause_ns = 30_000;
    let (client, to) = (ClientNumber(0), Destinations::of(GroupId(0)));
    let begun = world.now;
    let mut left = 400;
    while left > 0 || !missing(&world).is_empty() {
        world.pause(slow, world.now + pause_ns);
        let until = world.now + pause_ns + 1_000;
        while world.now < until {
            if left > 0 && world.multicast(client, to, 100).is_ok() {
                left -= 1;
            }
            world.advance();
        }
        assert!(world.now < begun + 1_000_000_000, "{:?}", missing(&world));
    }
    assert_eq!(safety(&world), Vec::<String>::new());
    assert_eq!(world.leader(GroupId(0)), Some(leader), "nobody was suspected");
    (world.now - begun, world.carried)
}

#[test]
fn references_tolerate_slow_follower_like_copies() {
    for seed in 1..=5 {
        let (copied_ns, _) = with_a_slow_follower(0, seed);
        let (by_reference_ns, carried) = with_a_slow_follower(40, seed);
        assert!(carried > 0, "the client did not wait for it");
        assert!(
            by_reference_ns < 2 * copied_ns,
            "seed {seed}: {by_reference_ns} ns by reference, {copied_ns} ns copied"
        );
    }
}
