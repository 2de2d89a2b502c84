//! Values that only a faulty peer writes. They cause an error or nothing, but never a panic or the
//! delivery of a message that was never sent.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{Destinations, LinkId, LinkRole, ReplicaLinks, SendError, Timestamp};

use super::faults::REFERENCES_FROM;
use super::judge::{missing, safety};
use super::world::{Settings, World};

/// Offsets of cells in a client's row, as in the core's layout.
const WRITTEN: usize = 0;
/// Offset of the cell in a replica's row that tells a client which incarnation is registered.
const OPENED: usize = 8;
/// Offset of the cell in a replica's row that tells a peer the highest timestamp that it has
/// granted.
const PROMISED: usize = 32;
const SLOT: usize = 64;
const PARTY: usize = SLOT + 8;
const DESTINATIONS: usize = SLOT + 24;
const LENGTH: usize = SLOT + 32;

/// Stores a message of client 1 in its rings at both groups' replicas, with some cells changed.
fn forge(world: &mut World, changes: &[(usize, u64)]) {
    let client = ClientNumber(1);
    for id in world.ids() {
        let link = ReplicaLinks::of(world.overlay, id.group).find(LinkRole::Client(client));
        let link = link.expect("a link");
        let own = u64::from(id.group.0) + 1;
        let slot = [(SLOT, 1), (PARTY, (1 << 32) | 1), (DESTINATIONS, own), (LENGTH, 8)];
        for (offset, value) in slot.iter().chain(changes).chain(&[(WRITTEN, 1)]) {
            world.poke(id, link, *offset, *value);
        }
    }
}

#[test]
fn forged_message_closes_its_client() {
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

/// A replica of the parent publishes a message for no group that the child reaches. The child takes
/// no messages from that replica, and uses those that the other replicas pass on.
#[test]
fn message_misdirected_by_a_parent_is_not_ordered() {
    for seed in 1..4 {
        let settings = Settings { seed, early: false, ..Settings::default() };
        let mut world = World::new(&[None, Some(0)], 3, settings);
        assert!(world.run_until(200_000, |world| {
            world.leader(GroupId(0)).is_some() && world.leader(GroupId(1)).is_some()
        }));
        let follower = (0..3)
            .map(Rank)
            .find(|rank| world.leader(GroupId(0)).is_some_and(|leader| leader.rank != *rank));
        let follower = follower.expect("two follow");
        for id in world.ids().into_iter().filter(|id| id.group == GroupId(1)) {
            let link = ReplicaLinks::of(world.overlay, id.group).find(LinkRole::Parent(follower));
            let link = link.expect("a link");
            let slot = [(SLOT, 1), (PARTY, 1 << 32), (DESTINATIONS, 1), (LENGTH, 8)];
            for (offset, value) in slot.into_iter().chain([(WRITTEN, 1)]) {
                world.poke(id, link, offset, value);
            }
        }
        world.run(2_000);
        for _ in 0..3 {
            world.multicast(ClientNumber(0), Destinations(3), 16).expect("there is room");
            assert!(world.run_until(400_000, |world| missing(world).is_empty()), "seed {seed}");
        }
        assert_eq!(safety(&world), Vec::<String>::new(), "seed {seed}");
    }
}

/// A reference whose client sends the body to no replica waits, without delaying other clients.
#[test]
fn missing_payload_does_not_delay_other_clients() {
    for seed in 1..6 {
        let settings = Settings { seed, references_from: 8, ..Settings::default() };
        let mut world = World::new(&[None, Some(0)], 3, settings);
        assert!(world.run_until(200_000, |world| {
            world.leader(GroupId(0)).is_some() && world.leader(GroupId(1)).is_some()
        }));
        forge(&mut world, &[]);
        for _ in 0..10 {
            let to = Destinations(1 + world.random.below(3) as u64);
            let _ = world.multicast(ClientNumber(0), to, 16);
            world.run(2_000);
        }
        assert!(world.run_until(400_000, |world| missing(world).is_empty()), "seed {seed}");
        assert_eq!(safety(&world), Vec::<String>::new(), "seed {seed}: it is not delivered");
    }
}

/// A replica publishes that the client's registration now belongs to another incarnation. The
/// client never regains it.
#[test]
fn client_closes_after_losing_its_registration() {
    let mut world = World::new(&[None], 3, Settings::default());
    let (number, to) = (ClientNumber(1), Destinations::of(GroupId(0)));
    assert!(world.multicast(number, to, 8).is_ok());
    assert!(world.run_until(200_000, |world| missing(world).is_empty()));
    world.poke_client(number, LinkId(0), OPENED, 2 << 1 | 1);
    world.step_client(number);
    assert!(world.clients[&number].client.is_closed());
    assert_eq!(world.multicast(number, to, 8).err(), Some(SendError::Closed));
}

/// The highest round that a timestamp can have.
#[test]
fn replica_accepts_the_highest_round_only_once() {
    let mut world = World::new(&[None], 3, Settings::default());
    assert!(world.run_until(200_000, |world| world.leader(GroupId(0)).is_some()));
    let most = Timestamp::new(u64::MAX, 0, Rank(0)).round();
    for _ in 0..200 {
        for id in world.ids() {
            for peer in 0..3 {
                world.poke(id, LinkId(peer), PROMISED, (most << 24) - 1);
            }
        }
        world.run(200);
    }
    // The rounds are exhausted: a replica that has promised the last round promises no lower one.
    let rounds = world.replicas.values().map(|running| running.replica.promised().round());
    assert_eq!(rounds.max(), Some(most));
    world.run(50_000);
    assert_eq!(safety(&world), Vec::<String>::new());
}

/// Returns a change of a cell that a hostile process might make.
fn change(world: &mut World) -> impl Fn(u64) -> u64 + use<> {
    let (kind, bit) = (world.random.below(6), world.random.below(64) as u32);
    let random = world.random.next().checked_shr(bit).unwrap_or(0);
    move |before: u64| match kind {
        0 => random,
        1 => before ^ 1_u64.checked_shl(bit).unwrap_or(0),
        2 => before.wrapping_add(1),
        3 => before.wrapping_sub(1),
        4 => u64::MAX,
        _ => random & 0xff,
    }
}

/// Changes one cell that another process can write: a cell of a row, of a log's control line, or of
/// an entry. An entry's seal is corrected afterwards.
fn spoil(world: &mut World) {
    let ids = world.ids();
    let id = ids[world.random.below(ids.len())];
    let change = change(world);
    match world.random.below(8) {
        0..=3 => {
            let links = ReplicaLinks::of(world.overlay, id.group).len();
            let link = LinkId(world.random.below(links) as u16);
            let cells = if world.random.chance(80) { 24 } else { 1_000 };
            let offset = 8 * world.random.below(cells);
            world.poke(id, link, offset, change(0));
        }
        4 => {
            let number = ClientNumber(world.random.below(2) as u16);
            let link = LinkId(world.random.below(ids.len()) as u16);
            let offset = 8 * world.random.below(16);
            world.poke_client(number, link, offset, change(0));
        }
        5 => {
            let offset = 8 * world.random.below(6);
            world.poke_log(id, offset, change);
        }
        _ if !world.replicas.contains_key(&id) => {}
        _ => {
            let [_, tail, _] = world.log_control(id);
            let place = tail.saturating_sub(world.random.below(4) as u64);
            let offset = world.header_at(id, place) + 8 * world.random.below(10);
            world.poke_log(id, offset, change);
            if world.random.chance(80) {
                world.seal(id, place);
            }
        }
    }
}

/// Rows, logs and entries with arbitrary content. No replica panics, reads outside its memory or
/// takes a position twice. Leaders fail in the meantime, so that their logs are read by others.
#[test]
fn arbitrary_rows_and_logs_cause_no_panic() {
    let mut halts = 0;
    for seed in 0..120 {
        let references_from = if seed % 2 == 0 { REFERENCES_FROM } else { 0 };
        let answer_max = if seed % 4 < 2 { 0 } else { 20 };
        let settings = Settings { seed, references_from, answer_max, ..Settings::default() };
        let mut world = World::new(&[None, Some(0)], 3, settings);
        world.run(3_000);
        for turn in 0..200 {
            let to = Destinations(1 + world.random.below(3) as u64);
            let length = world.random.below(60);
            let _ = world.multicast(ClientNumber(0), to, length);
            spoil(&mut world);
            world.run(40);
            let ids = world.ids();
            let id = ids[world.random.below(ids.len())];
            let leader = world.leader(id.group).unwrap_or(id);
            match turn % 30 {
                11 if world.may_crash(leader) => world.crash_replica(leader),
                25 if !world.replicas.contains_key(&id) => world.start_replica(id, false),
                _ => {}
            }
        }
        let is_outside = |complaint: &&String| complaint.contains("does not fit");
        assert_eq!(world.complaints.iter().find(is_outside), None, "seed {seed}");
        halts += usize::from(world.complaints.iter().any(|one| one.contains("a decided entry")));
        for (id, history) in &world.histories {
            let rises = history.messages.windows(2).all(|two| two[0].0 < two[1].0);
            assert!(rises, "seed {seed}: {id}");
        }
    }
    assert!(halts > 5, "logs that contradict themselves stop their replicas: {halts}");
}
