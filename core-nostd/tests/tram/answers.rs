//! A client receives an answer as soon as the answer arrives, whatever else the client waits for.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{Answers, Delivered, Destinations, ReplicaId, ShardApplication};

use super::judge::missing;
use super::world::{Settings, World};

#[test]
fn stalled_group_does_not_delay_anothers_answers() {
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

/// No replica of groups 1 and 2 has delivered the first message. That must not affect groups 0 and
/// 3, whose followers have replied to the other messages: the second waits for the leaders, and the
/// third for any replica.
#[test]
fn stalled_groups_do_not_delay_followers_replies_elsewhere() {
    let mut world = World::new(&[None, Some(0), Some(0), Some(0)], 3, Settings::default());
    let client = ClientNumber(0);
    for group in world.overlay.all().iter() {
        world.multicast(client, Destinations::of(group), 8).expect("there is room");
    }
    assert!(world.run_until(400_000, |world| missing(world).is_empty()));
    let groups = [0, 3].map(GroupId);
    let reached: Vec<ReplicaId> =
        world.ids().into_iter().filter(|id| groups.contains(&id.group)).collect();
    world.allow_only(&reached, &[client]);
    for group in groups {
        let leader = world.leader(group).and_then(|id| world.process_of(id)).expect("it has one");
        let to = world.process_of_client(client);
        world.network.borrow_mut().block(leader, to);
    }
    let mut multicast = |groups: [u16; 2], answers| {
        let to = Destinations::of(GroupId(groups[0])).with(GroupId(groups[1]));
        world.multicast_for(client, to, 8, answers).expect("there is room")
    };
    let first = multicast([1, 2], Answers::OneOfEach);
    let second = multicast([0, 3], Answers::Leaders);
    let third = multicast([0, 3], Answers::OneOfEach);
    assert!(world.run_until(100_000, |world| world.sent[&third].answered));
    assert_eq!([first, second].map(|message| world.sent[&message].answered), [false; 2]);
    world.network.borrow_mut().heal();
    assert!(world.run_until(400_000, |world| missing(world).is_empty()));
}

/// The second client comes once both groups have leaders. Only the first group orders its message,
/// so it is never opened in the second.
#[test]
fn late_client_learns_leaders_of_all_destinations() {
    let mut world = World::new(&[None, Some(0)], 3, Settings::default());
    let (early, late) = (ClientNumber(0), ClientNumber(1));
    let both = Destinations::of(GroupId(0)).with(GroupId(1));
    world.crash_client(late);
    world.multicast(early, both, 8).expect("there is room");
    assert!(world.run_until(100_000, |world| missing(world).is_empty()));
    world.start_client(late);
    let message = world.multicast_for(late, both, 8, Answers::Leaders).expect("there is room");
    assert!(world.run_until(100_000, |world| world.sent[&message].answered));
}

#[test]
fn closure_answers_with_one_byte() {
    let mut world = World::new(&[None], 3, Settings::default());
    let (client, here) = (ClientNumber(0), Destinations::of(GroupId(0)));
    let id = world.multicast(client, here, 3).expect("there is room");
    let payload: &[u8] = &[4, 2, 1];
    let mut application = |message: &Delivered<'_>| message.payload.iter().sum();
    let answer = application.deliver(&Delivered { place: 0, id, destinations: here, payload });
    assert_eq!((answer, application.answer()), (7, &[][..]));
}
