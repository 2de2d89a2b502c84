//! Joining, leaving and ringing, with all members in this process. For other processes, see
//! `shared_memory_processes`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{
    LONG, MappedMember, SharedFolder, VIEW, await_all, join, join_all, make, meet, name, small,
};
use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric as _, HostFabric as _, Kind, LossCause, Promises, Region, Token,
    ViewMemory, ViewPlan, ViewRows as _, WRITES_MAX, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_shared_memory::{Error, Fences, Residence};

#[test]
fn members_meet_in_any_order_and_read_rows() {
    let place = SharedFolder::new();
    let (root, layout) = (place.root(), small(4));
    let members: Vec<MappedMember> = std::thread::scope(|scope| {
        let starts = [(0, 40), (1, 0), (2, 15), (3, 30)].map(|(rank, delay)| {
            let (root, layout) = (&root, &layout);
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(delay));
                meet(root, "any-order", layout, rank)
            })
        });
        starts.into_iter().map(|start| start.join().expect("no panic")).collect()
    });
    for (value, member) in (100..).zip(&members) {
        member.row().cell(8).expect("a cell").publish(value);
    }
    for member in &members {
        let seen: Vec<u64> =
            member.rows().iter().map(|row| row.cell(8).expect("a cell").load()).collect();
        assert_eq!(seen, [100, 101, 102, 103]);
        assert_eq!(member.rows()[2].bytes(), layout.row_bytes(Rank(2)));
        assert!(member.rows().iter().all(|row| row.base().as_ptr().addr().is_multiple_of(128)));
    }
    drop(members);
    place.assert_empty();
}

#[test]
fn group_of_one_starts_at_once() {
    let place = SharedFolder::new();
    let member = join(&place.root(), "one", &small(1), 0).expect("it starts");
    assert_eq!(member.members(), [NodeId(10)]);
    drop(member);
    place.assert_empty();
}

#[test]
fn process_with_duplicate_id_is_refused() {
    let place = SharedFolder::new();
    let (root, layout) = (place.root(), small(2));
    let mut members = join_all(&root, "twice", &layout);
    let error = join(&root, "twice", &layout, 1).err().expect("it is there already");
    let pid = u64::from(std::process::id());
    assert!(
        matches!(error, Error::DuplicateId { id: NodeId(11), pid: told, .. } if told == pid),
        "{error}"
    );
    members[1].row().cell(0).expect("a cell").publish(5);
    assert_eq!(members[0].rows()[1].cell(0).expect("a cell").load(), 5);
    assert!(!members[0].fabric.check_peers());
    drop(members);
    place.assert_empty();
}

#[test]
fn only_one_concurrent_claim_of_id_succeeds() {
    let place = SharedFolder::new();
    let (root, layout) = (place.root(), small(1));
    let start = std::sync::Barrier::new(8);
    let joined = std::thread::scope(|scope| {
        let claims: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let claim = join(&root, "one-seat", &layout, 0);
                    start.wait();
                    match claim {
                        Ok(_member) => 1,
                        Err(Error::DuplicateId { .. }) => 0,
                        Err(error) => panic!("{error}"),
                    }
                })
            })
            .collect();
        claims.into_iter().map(|claim| claim.join().expect("no panic")).sum::<u32>()
    });
    assert_eq!(joined, 1);
    place.assert_empty();
}

/// Another process may hold the folder's lock forever, for example because it is stopped.
#[test]
fn waiting_for_folder_lock_can_be_cancelled() {
    let place = SharedFolder::new();
    let (root, group) = (place.root(), name("held"));
    let first = join(&root, "held", &small(1), 0).expect("it starts");
    let folder = std::fs::File::open(root.path().join("held")).expect("a folder");
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive).expect("its lock");
    let claim = |limit, cancel: &AtomicBool| {
        Residence::claim(&root, &group, NodeId(11), 1, 1, limit, cancel).expect_err("it is held")
    };
    let busy = claim(Duration::from_millis(20), &AtomicBool::new(false));
    assert!(matches!(busy, Error::Busy { .. }), "{busy}");
    let cancel = AtomicBool::new(false);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let claim = scope.spawn(|| claim(LONG, &cancel));
        std::thread::sleep(Duration::from_millis(20));
        cancel.store(true, Ordering::Relaxed);
        assert!(matches!(claim.join().expect("no panic"), Error::Cancelled));
    });
    assert!(started.elapsed() < LONG / 2);
    drop((folder, first));
    place.assert_empty();
}

#[test]
fn rank_outside_layout_is_refused() {
    let place = SharedFolder::new();
    let error = join(&place.root(), "rank", &small(2), 2).err().expect("there is no rank 2");
    assert!(matches!(error, Error::NotAMember { .. }), "{error}");
}

#[test]
fn groups_with_different_names_do_not_interfere() {
    let place = SharedFolder::new();
    let (root, layout) = (place.root(), small(2));
    let (red, mut blue) = (join_all(&root, "red", &layout), join_all(&root, "blue", &layout));
    red[0].row().cell(0).expect("a cell").publish(1);
    assert_eq!(red[1].rows()[0].cell(0).expect("a cell").load(), 1);
    assert_eq!(blue[1].rows()[0].cell(0).expect("a cell").load(), 0);
    drop(red);
    assert!(!blue[0].fabric.check_peers());
    assert_eq!(root.sweep().expect("swept"), Vec::<String>::new());
    blue[0].row().cell(0).expect("a cell").publish(2);
    assert_eq!(blue[1].rows()[0].cell(0).expect("a cell").load(), 2);
    drop(blue);
    place.assert_empty();
}

#[test]
fn group_name_can_be_reused() {
    let place = SharedFolder::new();
    let (root, layout) = (place.root(), small(2));
    for _ in 0..20 {
        let members = join_all(&root, "again", &layout);
        assert_eq!(members[0].rows()[1].cell(0).expect("a cell").load(), 0, "fresh memory");
        members[1].row().cell(0).expect("a cell").publish(9);
    }
    place.assert_empty();
}

#[test]
fn sweeps_and_other_groups_affect_no_member() {
    let place = SharedFolder::new();
    let (root, layout, over) = (place.root(), small(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                assert_eq!(root.sweep().expect("swept"), Vec::<String>::new(), "nobody died");
            }
        });
        let runs = ["one", "two"].map(|group| {
            let (root, layout) = (&root, &layout);
            scope.spawn(move || {
                for _ in 0..30 {
                    drop(join_all(root, group, layout));
                }
            })
        });
        let outcome = runs.map(std::thread::ScopedJoinHandle::join);
        over.store(true, Ordering::Relaxed);
        assert!(outcome.iter().all(Result::is_ok));
    });
    place.assert_empty();
}

#[test]
fn shared_memory_fabric_satisfies_the_contract() {
    let place = SharedFolder::new();
    let root = place.root();
    let layout = small(2);
    let made = |own| make(&root, "contract", &ViewPlan::of_layout(VIEW, Rank(own), &layout));
    let [one, two] = [0, 1].map(|own| made(own).expect("memory"));
    let (members, mut fabric, mut other) = ([one.mappings, two.mappings], one.fabric, two.fabric);
    assert!(fabric.capabilities().can_guard());
    assert!(fabric.capabilities().promises.contains(Promises::SHARED));
    let write = [Write::of_row(0, 8, Kind::Guard)];
    assert_eq!(fabric.post(VIEW, Rank(1), &write, None), Err(ErrorKind::Other), "not open");
    assert!(!fabric.ready(VIEW, Rank(1)));

    let memory = members[0].memory();
    assert_eq!(
        fabric.open(VIEW, &ViewMemory { row: members[1].row(), ..memory }),
        Err(ErrorKind::WrongMemory),
        "another's row"
    );
    other.open(VIEW, &members[1].memory()).expect("it opens");
    fabric.open(VIEW, &memory).expect("it opens");
    assert_eq!(fabric.open(VIEW, &memory), Err(ErrorKind::Other), "open already");
    assert!(
        fabric.ready(VIEW, Rank(1))
            && !fabric.ready(ViewId(1), Rank(1))
            && !fabric.ready(VIEW, Rank(2))
    );
    assert!(!fabric.arm(), "there is something to poll");
    assert_eq!(fabric.poll(), Some(Event::Ready { view: VIEW, peer: Rank(1) }));
    assert_eq!(fabric.poll(), None);

    assert_eq!(fabric.post(VIEW, Rank(1), &write, Some(Token(7))), Ok(()));
    assert_eq!(fabric.poll(), Some(Event::Completed(Token(7))));
    assert_eq!(fabric.post(VIEW, Rank(1), &write, None), Ok(()));
    assert_eq!(fabric.poll(), None);

    let row_bytes = members[0].row().bytes();
    let elsewhere = Area { region: Region(1), offset: 0 };
    for bad in [
        Write::of_row(row_bytes - 7, 8, Kind::Content),
        Write::of_row(usize::MAX, 8, Kind::Content),
        Write { target: Area { region: Region::ROW, offset: 8 }, ..write[0] },
        Write { source: elsewhere, target: elsewhere, ..write[0] },
    ] {
        assert_eq!(fabric.post(VIEW, Rank(1), &[bad], None), Err(ErrorKind::OutOfRange), "{bad:?}");
    }
    let long = [write[0]; WRITES_MAX + 1];
    assert_eq!(fabric.post(VIEW, Rank(1), &long, None), Err(ErrorKind::OutOfRange));
    assert_eq!(fabric.post(VIEW, Rank(0), &write, None), Err(ErrorKind::OutOfRange), "itself");
    assert_eq!(fabric.post(VIEW, Rank(9), &write, None), Err(ErrorKind::OutOfRange));

    while fabric.post(VIEW, Rank(1), &write, Some(Token(1))).is_ok() {}
    assert_eq!(fabric.post(VIEW, Rank(1), &write, Some(Token(1))), Err(ErrorKind::QueueFull));
    assert_eq!(fabric.post(VIEW, Rank(1), &write, None), Ok(()));
    assert_eq!(fabric.poll(), Some(Event::Completed(Token(1))));
    assert_eq!(fabric.post(VIEW, Rank(1), &write, Some(Token(2))), Ok(()));
    while fabric.poll().is_some() {}

    fabric.cut(VIEW, Rank(1));
    fabric.cut(VIEW, Rank(1));
    assert_eq!(fabric.post(VIEW, Rank(1), &write, None), Err(ErrorKind::PeerLost));
    assert!(!fabric.ready(VIEW, Rank(1)));
    assert!(fabric.retire(VIEW) && fabric.retire(VIEW));
    assert_eq!(fabric.post(VIEW, Rank(1), &write, None), Err(ErrorKind::Other));
}

#[test]
fn leaving_and_failing_peers_are_distinguished() {
    let place = SharedFolder::new();
    let mut members = join_all(&place.root(), "losses", &small(3));
    let (leaver, failing) = (members.remove(1), members.remove(1));
    let MappedMember { mappings, mut fabric } = members.remove(0);
    assert!(!fabric.check_peers() && fabric.arm());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            leaver.leave();
            leaver.leave();
            drop(failing);
        });
        assert!(fabric.sleep(LONG));
    });
    fabric.disarm();
    assert!(fabric.check_peers());
    assert!(!fabric.check_peers(), "told once");
    assert_eq!(
        fabric.poll(),
        Some(Event::PeerLost { view: VIEW, peer: Rank(1), cause: LossCause::Left })
    );
    assert_eq!(
        fabric.poll(),
        Some(Event::PeerLost { view: VIEW, peer: Rank(2), cause: LossCause::Exited })
    );
    assert_eq!(fabric.poll(), Some(Event::Woken));
    assert_eq!(fabric.poll(), None);
    let write = [Write::of_row(0, 8, Kind::Guard)];
    assert_eq!(fabric.post(VIEW, Rank(1), &write, None), Err(ErrorKind::PeerLost));
    assert_eq!(mappings.rows()[1].cell(0).expect("a cell").load(), 0, "a row outlives its owner");
    drop((mappings, fabric));
    place.assert_empty();
}

#[test]
fn posts_and_wake_calls_wake_sleeping_members() {
    let place = SharedFolder::new();
    let mut members = join_all(&place.root(), "bells", &small(2));
    let [one, two] = members.as_mut_slice() else { panic!("two members") };
    let (one, two) = (&mut one.fabric, &mut two.fabric);
    let write = [Write::of_row(0, 8, Kind::Guard)];
    one.post(VIEW, Rank(1), &write, None).expect("posted");
    assert_eq!(two.poll(), None);
    one.wake(VIEW, Rank(1));
    assert!(!two.arm(), "somebody rang already");
    assert_eq!(two.poll(), Some(Event::Woken));
    assert!(two.arm());
    one.post(VIEW, Rank(1), &write, None).expect("posted");
    assert!(two.sleep(LONG));
    two.disarm();
    assert_eq!(two.poll(), Some(Event::Woken));
    assert!(two.arm());
    assert!(!two.sleep(Duration::from_millis(1)));
    two.disarm();
    assert_eq!(two.poll(), None);
}

#[test]
fn application_thread_wakes_local_poller() {
    let place = SharedFolder::new();
    let mut members = join_all(&place.root(), "local", &small(1));
    let fabric = &mut members[0].fabric;
    let bell = fabric.local_bell();
    bell.ring_if_asleep();
    assert_eq!(fabric.poll(), None, "nobody sleeps");
    assert!(fabric.arm());
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(10));
        bell.ring_if_asleep();
        bell
    });
    assert!(fabric.sleep(LONG));
    fabric.disarm();
    // A handle may outlive the group.
    let bell = thread.join().expect("no panic");
    drop(members);
    bell.ring_if_asleep();
    bell.ring();
}

/// Members that differ in which side pays for the fences still wake each other.
#[test]
fn members_using_different_fences_wake_each_other() {
    let place = SharedFolder::new();
    let layout = small(2);
    let mut members: Vec<MappedMember> = [Fences::Both, Fences::Sleeper]
        .into_iter()
        .zip(0..)
        .map(|(fences, rank)| {
            let root = place.root().with_fences(fences);
            join(&root, "mixed", &layout, rank).expect("it starts")
        })
        .collect();
    await_all(&mut members);
    let mut other = members.pop().expect("two members");
    std::thread::scope(|scope| {
        scope.spawn(|| bounce(&mut other, 2000));
        bounce(&mut members[0], 2000);
    });
}

/// Plays one side of a ping-pong game, sleeping whenever it is not this side's turn.
fn bounce(member: &mut MappedMember, turns: u64) {
    let MappedMember { mappings, fabric } = member;
    let own = mappings.own();
    let peer = Rank(1 - own.get());
    let theirs = mappings.rows()[peer.index()].cell(0).expect("a cell");
    let ours = mappings.row().cell(0).expect("a cell");
    let write = [Write::of_row(0, 8, Kind::Guard)];
    for turn in 1..=turns {
        // The first side waits for the answer to its previous turn, and the second side for this
        // turn's question.
        let awaited = if own == Rank(0) { turn - 1 } else { turn };
        while theirs.load() < awaited {
            if fabric.arm() && theirs.load() < awaited {
                let asleep = Instant::now();
                fabric.sleep(LONG);
                assert!(asleep.elapsed() < LONG, "a lost wake-up in turn {turn}");
            }
            fabric.disarm();
            while fabric.poll().is_some() {}
        }
        ours.publish(turn);
        fabric.post(VIEW, peer, &write, None).expect("posted");
    }
}
