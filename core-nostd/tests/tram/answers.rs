//! Answers reach a client as soon as they are there, whatever it waits for beside them.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{Destinations, ReplicaId};

use super::judge::missing;
use super::world::{Settings, World};

#[test]
fn a_group_that_is_silent_holds_up_no_answer_of_another() {
    let (parent, child) = (Destinations::of(GroupId(0)), Destinations::of(GroupId(1)));
    let client = ClientNumber(0);
    for (seed, held_up) in (1..).zip([parent, parent.with(GroupId(1))]) {
        let mut world = World::new(&[None, Some(0)], 3, Settings { seed, ..Settings::default() });
        for to in [parent, child] {
            world.multicast(client, to, 8).expect("there is room");
        }
        assert!(world.run_until(100_000, |world| missing(world).is_empty()));
        let of_child: Vec<ReplicaId> =
            (0..3).map(|rank| ReplicaId { group: GroupId(1), rank: Rank(rank) }).collect();
        world.allow_only(&of_child, &[client]);
        let first = world.multicast(client, held_up, 8).expect("there is room");
        let second = world.multicast(client, child, 8).expect("there is room");
        assert!(world.run_until(20_000, |world| world.sent[&second].answered), "seed {seed}");
        assert!(!world.sent[&first].answered, "its group has got nothing");
        world.network.borrow_mut().heal();
        assert!(world.run_until(200_000, |world| world.sent[&first].answered), "seed {seed}");
    }
}
