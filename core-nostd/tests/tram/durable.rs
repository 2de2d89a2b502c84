//! Durable replicas: whole groups crash, and continue from their disks.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{
    Delivered, Destinations, Halt, LeastSaved, LentState, LinkState, LogRecord, OpenError, Replica,
    ReplicaId, ReplicaLinks, ReplicaOptions, SourceState,
};

use super::calm::some_groups;
use super::faults::{one_fault, seeds, settings_of, settle, shape_of};
use super::judge::missing;
use super::network::capabilities;
use super::world::{Settings, World, tree};

const ROOT: GroupId = GroupId(0);

fn durable(seed: u64) -> Settings {
    Settings { durable: true, ..settings_of(seed) }
}

fn durable_world(seed: u64) -> World {
    let (parents, replicas) = shape_of(seed);
    let places_percent = if seed.is_multiple_of(3) { 30 } else { 0 };
    let more_snapshots = (seed / 8).is_multiple_of(2);
    let saves_percent = [4, 30, 80][(seed / 4) as usize % 3];
    let settings = Settings { saves_percent, places_percent, more_snapshots, ..durable(seed) };
    World::new(parents, replicas, settings)
}

fn start_all(world: &mut World) {
    for id in world.ids() {
        if !world.replicas.contains_key(&id) {
            world.start_replica(id, false);
        }
    }
}

/// A fault that only durable groups survive, or one that any group does.
fn one_durable_fault(world: &mut World) {
    let ids = world.ids();
    let some = ids[world.random.below(ids.len())];
    let group = |id: &&ReplicaId| id.group == some.group;
    match world.random.below(12) {
        0 => world.crash_replica(some),
        1 => ids.iter().filter(group).for_each(|id| world.crash_replica(*id)),
        2 => ids.iter().for_each(|id| world.crash_replica(*id)),
        3 => start_all(world),
        4 => {
            let counts = |id: &ReplicaId| {
                world.replicas.get(id).is_some_and(|running| running.replica.is_voter())
            };
            // A disk is lost only if the others can readmit its replica.
            if ids.iter().filter(group).all(counts) {
                if world.random.chance(60) {
                    world.crash_replica(some);
                    world.disks.remove(&some);
                }
                if world.random.chance(60) {
                    crash_while_gaps_are_filled(world, some);
                }
            }
        }
        5 | 6 => {
            world.crash_replica(some);
            world.start_replica(some, false);
        }
        7 => {
            let others: Vec<ReplicaId> = ids.iter().filter(group).copied().collect();
            let other = others[world.random.below(others.len())];
            if let (Some(a), Some(b)) = (world.process_of(some), world.process_of(other)) {
                world.network.borrow_mut().block(a, b);
                world.network.borrow_mut().block(b, a);
            }
        }
        _ => one_fault(world),
    }
}

/// Crashes everything while a replica is brought up to date: one that has lost its disk, or one
/// that has fallen behind. Its children may still need entries that it lacks.
fn crash_while_gaps_are_filled(world: &mut World, id: ReplicaId) {
    if world.disks.contains_key(&id) {
        world.fall_behind(id);
        world.pause(id, u64::MAX);
    }
    for below in world.ids().into_iter().filter(|below| below.group > id.group) {
        world.crash_replica(below);
    }
    for _ in 0..6 {
        let _ = world.multicast(ClientNumber(0), world.overlay.all(), 8);
        world.run(500);
    }
    if world.replicas.contains_key(&id) {
        world.pause(id, world.now);
    } else {
        world.start_replica(id, false);
    }
    let actions = world.random.below(3_000);
    world.run(actions);
    world.ids().into_iter().for_each(|id| world.crash_replica(id));
    start_all(world);
}

fn durable_run(seed: u64) -> World {
    let mut world = durable_world(seed);
    let clients = usize::from(world.settings.clients);
    for _ in 0..30 {
        for _ in 0..world.random.below(12) {
            let client = ClientNumber(world.random.below(clients) as u16);
            let (groups, length) = (some_groups(&mut world), world.random.below(60));
            let _ = world.multicast(client, groups, length);
            let actions = world.random.below(300);
            world.run(actions);
        }
        one_durable_fault(&mut world);
    }
    world.network.borrow_mut().heal();
    start_all(&mut world);
    settle(&mut world, "once all are back");
    for id in world.ids() {
        world.crash_replica(id);
    }
    start_all(&mut world);
    settle(&mut world, "after all have crashed");
    world
}

/// Seeds of runs in which a replica with gaps would lead after a crash, if its disk did not say so.
const GAPS: [u64; 2] = [102, 173];

/// Seed of a run in which a replica that has lost its disk would count after a second crash.
const NO_VOTER: u64 = 1115;

#[test]
fn crashes_of_whole_groups_lose_no_message() {
    let (mut recovered, mut restored, mut delivered) = (0, 0, 0);
    for seed in seeds(48).chain(GAPS).chain([NO_VOTER]) {
        let world = durable_run(seed);
        recovered += world.recovered;
        restored += world.restored;
        delivered += world.histories.values().map(|of| of.messages.len()).sum::<usize>();
        assert_eq!(world.noticed, 0, "seed {seed}: no disk was rolled back");
    }
    eprintln!("{recovered} recovered, {restored} restored, {delivered} delivered");
    assert!(recovered > 500 && restored > 10 && delivered > 5_000);
}

/// A disk that lacks the last of what was saved on it is noticed by a replica that has seen it. It
/// is not noticed if nobody has seen it: for example, a candidate's own promise.
#[test]
fn rolled_back_disks_are_noticed() {
    let (mut rolled_back, mut noticed) = (0, 0);
    for seed in seeds(40) {
        let mut world = durable_world(seed);
        for _ in 0..4 {
            let (groups, length) = (some_groups(&mut world), world.random.below(60));
            let _ = world.multicast(ClientNumber(0), groups, length);
            world.run(400);
        }
        let ids = world.ids();
        let id = ids[world.random.below(ids.len())];
        world.crash_replica(id);
        let writes = 1 + world.random.below(4);
        if world.roll_back(id, writes) {
            rolled_back += 1;
            world.start_replica(id, false);
            noticed += world.noticed;
        }
    }
    eprintln!("{rolled_back} rolled back, {noticed} noticed");
    assert!(rolled_back > 0 && noticed * 2 > rolled_back);
}

#[test]
fn common_bound_of_two_disks_covers_both() {
    let disks = [[5, 5, 10, 12], [7, 4, 20, 15], [6, 5, 9, 30]];
    for (first, second, both) in [
        (disks[0], disks[1], [7, 5, 10, 15]),
        (disks[0], disks[2], [6, 5, 10, 30]),
        (disks[1], disks[2], [7, 5, 9, 30]),
    ] {
        let [first, second] = [first, second].map(LeastSaved::from_cells);
        assert_eq!(first.and(&second).cells(), both);
        assert_eq!(second.and(&first).cells(), both);
        assert!(first.and(&second).covers(&first) && first.and(&second).covers(&second));
        assert!(!first.covers(&second) && !second.covers(&first));
    }
}

fn opened(is_durable: bool, references_from: u32) -> Result<(), OpenError> {
    let settings = Settings { references_from, ..Settings::default() };
    let overlay = tree(&[None], 1, &settings);
    let id = ReplicaId { group: GroupId(0), rank: Rank(0) };
    let links = ReplicaLinks::of(&overlay, id.group).len();
    let lent = LentState {
        links: &mut vec![LinkState::default(); links],
        sources: &mut vec![SourceState::default(); usize::from(settings.clients) + 1],
        replies: &mut vec![0; Replica::reply_cells(&overlay)],
        payload: &mut vec![0; settings.payload_max as usize],
    };
    let options = ReplicaOptions { is_durable, ..ReplicaOptions::default() };
    Replica::open(&overlay, id, options, capabilities(), lent).map(drop)
}

/// The payload of a reference is not in the log.
#[test]
fn durable_replica_refuses_references() {
    assert_eq!(opened(true, 30), Err(OpenError::References));
    assert_eq!((opened(true, 0), opened(false, 30)), (Ok(()), Ok(())));
    assert!(OpenError::References.to_string().contains("durable"));
}

/// A host may have lost entries, or may have exchanged them: the replica says so and delivers none.
#[test]
fn log_without_its_last_entries_is_refused() {
    let mut world = World::new(&[None], 1, Settings { saves_percent: 100, ..durable(1) });
    let id = ReplicaId { group: GroupId(0), rank: Rank(0) };
    for _ in 0..6 {
        let to = world.overlay.all();
        world.multicast(ClientNumber(0), to, 20).expect("there is room");
        assert!(world.run_until(100_000, |world| missing(world).is_empty()));
    }
    let (record, entries) = world.log_of(id);
    assert_eq!(record.tail(), entries.len() as u64);
    assert!(record.is_voter() && !LogRecord::default().is_voter());
    let from_disk = |entries: &[(u64, &[u8])], record: LogRecord| {
        let mut world = World::new(&[None], 1, Settings { saves_percent: 0, ..durable(1) });
        let running = world.replicas.get_mut(&id).expect("it runs");
        let mut delivered = 0;
        let mut application = |_: &Delivered<'_>| {
            delivered += 1;
            0
        };
        let replica = &mut running.replica;
        let mut put = |entry: &(u64, &[u8])| {
            replica.recover_entry(&record, *entry, &running.memory, &mut application)
        };
        let ended = entries.iter().try_for_each(&mut put);
        let ended = ended.and_then(|()| replica.recover(&record, &running.memory));
        (ended, delivered)
    };
    let all: Vec<(u64, &[u8])> =
        entries.iter().map(|(place, bytes)| (*place, bytes.as_slice())).collect();
    assert_eq!(from_disk(&all, record), (Ok(()), 5), "the last was saved before it was decided");
    let (last, rest) = all.split_last().expect("some");
    assert_eq!(from_disk(rest, record).0, Err(Halt::NoEntry), "the last is gone");
    assert_eq!(from_disk(&all[1..], record), (Err(Halt::NotContinued), 0), "the first is gone");
    let (place, bytes) = *last;
    let shorter = [rest, &[(place, &bytes[..bytes.len() - 1])]].concat();
    assert_eq!(from_disk(&shorter, record).0, Err(Halt::NoEntry), "cut off");
    let renamed = [rest, &[(place, all[0].1)]].concat();
    assert_eq!(from_disk(&renamed, record).0, Err(Halt::NoEntry), "the header of another");
    let beyond = [&all[..], &[(place + 1, bytes)]].concat();
    assert_eq!(from_disk(&beyond, record).0, Err(Halt::NotContinued), "after the end");
    let [promised, stamp, repair, tail, decided, begins, flags] = record.cells();
    let more = |tail, decided| {
        LogRecord::from_cells([promised, stamp, repair, tail, decided, begins, flags])
    };
    let undecided = from_disk(&all, more(tail, tail + 1)).0;
    assert_eq!(undecided, Err(Halt::NoEntry), "more was decided than there is");
    let far = [(1_000, bytes)];
    let overlapping = from_disk(&far, more(2_000, decided));
    assert_eq!(overlapping, (Err(Halt::NotContinued), 0), "not in the same log");
    assert_eq!(more(tail, decided), record);
}

/// One replica asks another for its log. One of them crashes before its promise is saved, and no
/// longer knows of it. So it may serve the earlier leader, which must not decide anything that the
/// candidate or a later leader does not find.
#[test]
fn leaders_rely_on_saved_promises_only() {
    let (client, other) = (ClientNumber(0), ClientNumber(1));
    for seed in 0..40 {
        let settings = Settings { seed, saves_percent: 100, ..durable(1) };
        let mut world = World::new(&[None], 3, settings);
        world.multicast(client, Destinations::of(ROOT), 20).expect("there is room");
        assert!(world.run_until(100_000, |world| missing(world).is_empty()));
        let first = world.leader(ROOT).expect("it has one");
        let others: Vec<ReplicaId> = world.ids().into_iter().filter(|id| *id != first).collect();
        let forgetful = others[seed as usize % 2];
        world.unsaving = Some(forgetful);
        world.allow_only(&others, &[other]);
        world.multicast(other, Destinations::of(ROOT), 20).expect("there is room");
        world.run(6_000);
        world.crash_replica(forgetful);
        world.unsaving = None;
        world.start_replica(forgetful, false);
        world.allow_only(&[first, forgetful], &[client]);
        world.multicast(client, Destinations::of(ROOT), 20).expect("there is room");
        world.run(12_000);
        world.crash_replica(first);
        world.network.borrow_mut().heal();
        settle(&mut world, "without the first leader");
        world.start_replica(first, false);
        settle(&mut world, "once all are back");
    }
}

/// Everything crashes, and the disks lose each write that was not saved.
#[test]
fn answered_messages_survive_crash_of_all_replicas() {
    let mut world = durable_world(0);
    let client = ClientNumber(0);
    let mut messages = Vec::new();
    for _ in 0..20 {
        let message = world.multicast(client, world.overlay.all(), 20).expect("there is room");
        assert!(world.run_until(400_000, |world| world.sent[&message].answered));
        messages.push(message);
    }
    world.crash_client(client);
    for id in world.ids() {
        world.crash_replica(id);
    }
    start_all(&mut world);
    assert!(world.run_until(400_000, |world| missing(world).is_empty()));
    assert_eq!(world.ever.len(), messages.len());
}
