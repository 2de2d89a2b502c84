//! Long messages by reference: how their client gives them to the replicas.

use std::collections::BTreeSet;

use tramontane_core::ids::{ClientNumber, GroupId};
use tramontane_core::tram::Destinations;

use super::judge::{missing, safety};
use super::world::{Settings, World};

/// Longer than what one step gives.
const LENGTH: u32 = 20_000;

/// A group of three that has a leader, and three clients that have nothing to send.
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
fn a_step_gives_one_long_message_to_one_replica_and_clients_begin_with_different_ones() {
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
