//! What peers may write that no correct peer does. It is an error or nothing, never a panic, and
//! never a message that nobody sent.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{Destinations, LinkId, ReplicaId, ReplicaLinks, Role};

use super::judge::{missing, safety};
use super::world::{Settings, World};

/// Cells of a client's row, as the core lays it out.
const WRITTEN: usize = 0;
const SLOT: usize = 64;
const PARTY: usize = SLOT + 8;
const DESTINATIONS: usize = SLOT + 24;
const LENGTH: usize = SLOT + 32;

/// Stores a message of client 1 in its rings at both groups' replicas, with cells changed.
fn forge(world: &mut World, changes: &[(usize, u64)]) {
    let client = ClientNumber(1);
    for id in world.ids() {
        let link = ReplicaLinks::of(world.overlay, id.group).find(Role::Client(client));
        let link = link.expect("a link");
        let own = u64::from(id.group.0) + 1;
        let slot = [(SLOT, 1), (PARTY, (1 << 32) | 1), (DESTINATIONS, own), (LENGTH, 8)];
        for (offset, value) in slot.iter().chain(changes).chain(&[(WRITTEN, 1)]) {
            world.poke(id, link, *offset, *value);
        }
    }
}

#[test]
fn a_message_that_no_correct_client_writes_is_not_ordered_and_its_client_is_closed() {
    let forged: [&[(usize, u64)]; 5] = [
        &[(PARTY, 1 << 32)],       // Under client 0's name.
        &[(PARTY, (7 << 32) | 1)], // Of another incarnation.
        &[(DESTINATIONS, 0)],
        &[(DESTINATIONS, 1 << 40)], // No group.
        &[(LENGTH, u64::MAX)],
    ];
    for (case, changes) in forged.into_iter().enumerate() {
        let settings = Settings { seed: case as u64 + 1, ..Settings::default() };
        let mut world = World::new(&[None, Some(0)], 3, settings);
        assert!(world.run_until(200_000, |world| {
            world.leader(GroupId(0)).is_some() && world.leader(GroupId(1)).is_some()
        }));
        forge(&mut world, changes);
        for _ in 0..20 {
            let to = Destinations(1 + world.random.below(3) as u64);
            let _ = world.multicast(ClientNumber(0), to, 16);
            world.run(2_000);
        }
        assert!(world.run_until(400_000, |world| missing(world).is_empty()), "case {case}");
        assert_eq!(safety(&world), Vec::<String>::new(), "case {case}");
        assert!(!world.sent.is_empty());
        world.step_client(ClientNumber(1));
        assert!(world.clients[&ClientNumber(1)].client.is_closed(), "case {case}");
    }
}

#[test]
fn rows_of_any_content_make_no_replica_panic() {
    for seed in 0..60 {
        let settings = Settings { seed, ..Settings::default() };
        let mut world = World::new(&[None, Some(0)], 3, settings);
        world.run(3_000);
        for _ in 0..300 {
            let ids = world.ids();
            let id = ids[world.random.below(ids.len())];
            let links = ReplicaLinks::of(world.overlay, id.group).len();
            let link = LinkId(world.random.below(links) as u16);
            let offset = 8 * world.random.below(24);
            let bits = world.random.below(65) as u32;
            let value = world.random.next().checked_shr(bits).unwrap_or(0);
            world.poke(id, link, offset, value);
            world.run(30);
        }
        // Whatever they made of it: they are all there, and whoever could not go on has said so.
        assert!(world.replicas.contains_key(&ReplicaId { group: GroupId(0), rank: Rank(0) }));
    }
}
