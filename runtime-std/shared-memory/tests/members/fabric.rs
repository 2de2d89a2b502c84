//! Joining, leaving and ringing, with all members in this process. Other processes:
//! `shared_memory_processes`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{LONG, NEVER, Place, VIEW, join, join_all, layout, name, open, small};
use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric as _, HostFabric as _, Kind, LossCause, Promises, Region, Token,
    ViewMemory, ViewRows as _, WRITES_MAX, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_shared_memory::{Error, Fences, Mappings, Rendezvous, SharedMemory};

#[test]
fn members_meet_in_any_order_and_read_each_others_rows() {
    let place = Place::new();
    let (root, layout) = (place.root(), small(4));
    let members: Vec<Mappings> = std::thread::scope(|scope| {
        let starts = [(0, 40), (1, 0), (2, 15), (3, 30)].map(|(rank, delay)| {
            let (root, layout) = (&root, &layout);
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(delay));
                join(root, "any-order", layout, rank, LONG).expect("it joins")
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
fn a_group_of_one_needs_nobody() {
    let place = Place::new();
    let member = join(&place.root(), "one", &small(1), 0, Duration::ZERO).expect("it joins");
    assert_eq!(member.members(), [NodeId(10)]);
    drop(member);
    place.assert_empty();
}

#[test]
fn a_duplicate_id_is_refused_and_the_first_is_not_disturbed() {
    let place = Place::new();
    let (root, layout) = (place.root(), small(2));
    let members = join_all(&root, "twice", &layout);
    let error = join(&root, "twice", &layout, 1, LONG).expect_err("it is there already");
    let pid = u64::from(std::process::id());
    assert!(
        matches!(error, Error::DuplicateId { id: NodeId(11), pid: told, .. } if told == pid),
        "{error}"
    );
    members[1].row().cell(0).expect("a cell").publish(5);
    assert_eq!(members[0].rows()[1].cell(0).expect("a cell").load(), 5);
    assert!(!open(&members[0]).check_peers());
    drop(members);
    place.assert_empty();
}

#[test]
fn of_many_that_claim_one_id_one_gets_it() {
    let place = Place::new();
    let (root, layout) = (place.root(), small(1));
    let start = std::sync::Barrier::new(8);
    let joined = std::thread::scope(|scope| {
        let claims: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let claim = join(&root, "one-seat", &layout, 0, LONG);
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

#[test]
fn members_that_do_not_come_are_named_and_nothing_is_left() {
    let place = Place::new();
    let started = Instant::now();
    let error = join(&place.root(), "lonely", &small(3), 1, Duration::from_millis(150))
        .expect_err("nobody else comes");
    assert!(started.elapsed() < LONG / 2);
    let Error::MissingMembers { missing, .. } = &error else { panic!("{error}") };
    assert_eq!(missing, &[NodeId(10), NodeId(12)]);
    place.assert_empty();
}

#[test]
fn another_configuration_is_refused_by_both_sides() {
    let place = Place::new();
    let root = place.root();
    let (one, other) = (layout(2, 8, 100), layout(2, 8, 101));
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| join(&root, "digest", &one, 0, LONG));
        let second = scope.spawn(|| join(&root, "digest", &other, 1, LONG));
        (first.join().expect("no panic"), second.join().expect("no panic"))
    });
    assert!(matches!(first, Err(Error::WrongDigest { peer: NodeId(11) })), "{first:?}");
    assert!(matches!(second, Err(Error::WrongDigest { peer: NodeId(10) })), "{second:?}");
    place.assert_empty();
}

#[test]
fn waiting_can_be_cancelled() {
    let place = Place::new();
    let (root, layout, cancel) = (place.root(), small(2), AtomicBool::new(false));
    let started = Instant::now();
    std::thread::scope(|scope| {
        let member = scope.spawn(|| {
            let group = name("cancel");
            Rendezvous::new(&root, &group, &layout, Rank(0)).expect("a rank").join(LONG, &cancel)
        });
        std::thread::sleep(Duration::from_millis(20));
        cancel.store(true, Ordering::Relaxed);
        assert!(matches!(member.join().expect("no panic"), Err(Error::Cancelled)));
    });
    assert!(started.elapsed() < LONG / 2);
    place.assert_empty();
}

#[test]
fn a_rank_outside_the_layout_is_refused() {
    let place = Place::new();
    let error = join(&place.root(), "rank", &small(2), 2, LONG).expect_err("there is no rank 2");
    assert!(matches!(error, Error::NotAMember { .. }), "{error}");
}

#[test]
fn two_groups_at_once_do_not_meet() {
    let place = Place::new();
    let (root, layout) = (place.root(), small(2));
    let (red, blue) = (join_all(&root, "red", &layout), join_all(&root, "blue", &layout));
    red[0].row().cell(0).expect("a cell").publish(1);
    assert_eq!(red[1].rows()[0].cell(0).expect("a cell").load(), 1);
    assert_eq!(blue[1].rows()[0].cell(0).expect("a cell").load(), 0);
    drop(red);
    assert!(!open(&blue[0]).check_peers());
    assert_eq!(root.sweep().expect("swept"), Vec::<String>::new());
    blue[0].row().cell(0).expect("a cell").publish(2);
    assert_eq!(blue[1].rows()[0].cell(0).expect("a cell").load(), 2);
    drop(blue);
    place.assert_empty();
}

#[test]
fn a_group_can_be_run_again_under_its_name() {
    let place = Place::new();
    let (root, layout) = (place.root(), small(2));
    for _ in 0..20 {
        let members = join_all(&root, "again", &layout);
        assert_eq!(members[0].rows()[1].cell(0).expect("a cell").load(), 0, "fresh memory");
        members[1].row().cell(0).expect("a cell").publish(9);
    }
    place.assert_empty();
}

#[test]
fn sweeps_and_other_groups_comings_and_goings_disturb_nobody() {
    let place = Place::new();
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
fn a_member_that_was_restarted_alone_does_not_join_the_old_run() {
    let place = Place::new();
    let (root, layout) = (place.root(), small(3));
    let mut members = join_all(&root, "restart", &layout);
    drop(members.remove(1));
    let error = join(&root, "restart", &layout, 1, Duration::from_millis(200))
        .expect_err("the others run without it");
    let Error::StillEnding { peers, .. } = &error else { panic!("{error}") };
    assert_eq!(peers, &[NodeId(10), NodeId(12)]);
    // Once the others have ended too, it waits for their next run.
    std::thread::scope(|scope| {
        let restarted = scope.spawn(|| join(&root, "restart", &layout, 1, LONG).expect("it joins"));
        std::thread::sleep(Duration::from_millis(20));
        drop(members);
        let others = [0, 2].map(|rank| {
            let (root, layout) = (&root, &layout);
            scope.spawn(move || join(root, "restart", layout, rank, LONG).expect("it joins"))
        });
        let _others = others.map(|other| other.join().expect("no panic"));
        restarted.join().expect("no panic");
    });
    place.assert_empty();
}

#[test]
fn the_fabric_keeps_its_contract() {
    let place = Place::new();
    let members = join_all(&place.root(), "contract", &small(2));
    let mut fabric = SharedMemory::new(&members[0]);
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
fn a_peer_that_leaves_is_told_from_one_that_fails_and_both_ring() {
    let place = Place::new();
    let mut members = join_all(&place.root(), "losses", &small(3));
    let mut fabric = open(&members[0]);
    assert!(!fabric.check_peers() && fabric.arm());
    std::thread::scope(|scope| {
        let (leaver, failing) = (members.remove(1), members.remove(1));
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
    assert_eq!(members[0].rows()[1].cell(0).expect("a cell").load(), 0, "a row outlives its owner");
    drop((members, fabric));
    place.assert_empty();
}

#[test]
fn only_a_sleeper_is_rung_by_a_post_and_anybody_by_a_wake() {
    let place = Place::new();
    let members = join_all(&place.root(), "bells", &small(2));
    let (mut one, mut two) = (open(&members[0]), open(&members[1]));
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
fn an_application_thread_wakes_the_poller_of_its_own_process() {
    let place = Place::new();
    let members = join_all(&place.root(), "local", &small(1));
    let mut fabric = open(&members[0]);
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
    drop((fabric, members));
    bell.ring_if_asleep();
    bell.ring();
}

/// Members that differ in who pays for the fences still wake each other.
#[test]
fn members_with_different_fences_wake_each_other() {
    let place = Place::new();
    let (root, layout, group) = (place.root(), small(2), name("mixed"));
    let mut members: Vec<Mappings> = std::thread::scope(|scope| {
        let joins = [(0, Fences::Both), (1, Fences::Sleeper)].map(|(rank, fences)| {
            let (root, layout, group) = (&root, &layout, &group);
            scope.spawn(move || {
                let rendezvous = Rendezvous::new(root, group, layout, Rank(rank)).expect("a rank");
                rendezvous.with_fences(fences).join(LONG, &NEVER).expect("it joins")
            })
        });
        joins.into_iter().map(|join| join.join().expect("no panic")).collect()
    });
    let other = members.pop().expect("two members");
    std::thread::scope(|scope| {
        scope.spawn(|| bounce(&other, 2000));
        bounce(&members[0], 2000);
    });
}

/// One side of a ping-pong that sleeps whenever it is not its turn.
fn bounce(mappings: &Mappings, turns: u64) {
    let mut fabric = open(mappings);
    let own = mappings.own();
    let peer = Rank(1 - own.get());
    let theirs = mappings.rows()[peer.index()].cell(0).expect("a cell");
    let ours = mappings.row().cell(0).expect("a cell");
    let write = [Write::of_row(0, 8, Kind::Guard)];
    for turn in 1..=turns {
        // The first waits for the other's answer to its last turn, the second for this turn's
        // question.
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
