//! Members over TCP: back-pressure, sleep, the ways in which members end, and successive views.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::{
    MEMBERS, PATIENCE, ROW_BYTES, TcpMember, VIEW, assert_way, connections, guard, ids, key,
    listeners, meet, members, settle, small,
};
use tramontane_core::fabric::{
    ErrorKind, Event, Fabric, HostFabric, Kind, LocalBell, LossCause, Token, ViewRows as _,
    WRITES_MAX, Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_tcp::Settings;

const NEXT: ViewId = ViewId(2);

/// Posts a whole row repeatedly until the queue is full. Returns the number of lists accepted.
fn crowd(from: &mut TcpMember, view: ViewId, to: Rank) -> u64 {
    let whole = Write::of_row(0, ROW_BYTES, Kind::Content);
    for posted in 0..100_000 {
        match from.fabric.post(view, to, &[whole], Some(Token(posted))) {
            Ok(()) => {}
            Err(ErrorKind::QueueFull) => return posted,
            Err(kind) => panic!("{kind}"),
        }
    }
    panic!("a peer that reads nothing takes everything");
}

#[test]
fn stopped_peer_does_not_delay_others() {
    for key in [None, key()] {
        let mut members = members(key, small());
        assert!(crowd(&mut members[0], VIEW, Rank(1)) > 0);
        // The other peers are not affected.
        for value in 1..=20 {
            assert_way(&mut members, 0, 2, value);
            assert_way(&mut members, 2, 0, value);
        }
        // A member that waits only for that peer sleeps once the kernel at the other end has no
        // room left either.
        let rests = (0..100).any(|_| {
            crowd(&mut members[0], VIEW, Rank(1));
            members[0].events();
            let is_armed = members[0].fabric.arm();
            let is_rung = is_armed && members[0].fabric.sleep(Duration::from_millis(100));
            members[0].fabric.disarm();
            is_armed && !is_rung
        });
        assert!(rests, "woken a hundred times for a peer that takes nothing");
        // The member wakes when the peer takes something again.
        let (first, rest) = members.split_at_mut(1);
        let woken = std::thread::scope(|scope| {
            let peer = &mut rest[0];
            let reading = scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(300) {
                    peer.fabric.carry();
                }
            });
            let is_armed = first[0].fabric.arm();
            let woken = !is_armed || first[0].fabric.sleep(PATIENCE);
            first[0].fabric.disarm();
            reading.join().expect("no panic");
            woken
        });
        assert!(woken, "a peer took what waited, and nobody woke");
        settle(&mut members);
        assert_way(&mut members, 0, 1, 77);
        let lost =
            members[0].events().into_iter().find(|event| matches!(event, Event::PeerLost { .. }));
        assert_eq!(lost, None);
    }
}

#[test]
fn slow_peer_receives_only_the_newest_values() {
    let mut members = members(None, small());
    let rows = members[0].rows.clone();
    let cell = rows.row().cell(512).expect("a cell");
    let mut value = 0;
    loop {
        value += 1;
        cell.publish(value);
        match members[0].fabric.post(
            VIEW,
            Rank(1),
            &[guard(512), Write::of_row(1024, 32_768, Kind::Content)],
            None,
        ) {
            Ok(()) => {}
            Err(kind) => break assert_eq!(kind, ErrorKind::QueueFull),
        }
    }
    for _ in 0..1000 {
        value += 1;
        cell.publish(value);
    }
    settle(&mut members);
    assert!(members[1].cell(Rank(0), 512) < value, "it was posted by nobody");
    members[0].fabric.post(VIEW, Rank(1), &[guard(512)], None).expect("there is room again");
    settle(&mut members);
    assert_eq!(members[1].cell(Rank(0), 512), value);
}

/// Posts a list of `WRITES_MAX` short writes, after which the core has more to post.
fn post_full(from: &mut TcpMember, to: Rank) {
    let content: Vec<_> =
        (0..WRITES_MAX).map(|cell| Write::of_row(1024 + cell * 64, 8, Kind::Content)).collect();
    from.fabric.post(VIEW, to, &content, None).expect("room");
}

#[test]
fn full_lists_are_sent_with_their_successor() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let rows = members[0].rows.clone();
        rows.row().cell(1024).expect("a cell").publish(5);
        rows.row().cell(512).expect("a cell").publish(6);
        let (first, rest) = members.split_at_mut(1);
        let seen = |peer: &mut TcpMember| {
            peer.fabric.carry();
            (peer.cell(Rank(0), 1024), peer.cell(Rank(0), 512))
        };
        for _ in 0..7 {
            post_full(&mut first[0], Rank(1));
        }
        assert_eq!(seen(&mut rest[0]), (0, 0), "a full list was sent alone");
        first[0].fabric.post(VIEW, Rank(1), &[guard(512)], None).expect("room");
        assert_eq!(seen(&mut rest[0]), (5, 6), "one system call sends all, and one receives all");

        // Without a successor, the next poll sends them.
        rows.row().cell(1024).expect("a cell").publish(7);
        post_full(&mut first[0], Rank(1));
        assert_eq!(seen(&mut rest[0]), (5, 6));
        first[0].fabric.carry();
        assert_eq!(seen(&mut rest[0]), (7, 6));
    }
}

#[test]
fn held_back_lists_are_bounded() {
    let mut members = members(None, Settings::default());
    members[0].rows.clone().row().cell(1024).expect("a cell").publish(5);
    // No list has a successor that ends the wait.
    for _ in 0..100 {
        post_full(&mut members[0], Rank(1));
    }
    members[1].fabric.carry();
    assert_eq!(members[1].cell(Rank(0), 1024), 5);
}

#[test]
fn local_thread_wakes_sleeper() {
    let mut members = members(None, Settings::default());
    let fabric = &mut members[0].fabric;
    let bell = fabric.local_bell();
    bell.ring_if_asleep();
    assert!(fabric.arm(), "to ring a member that is awake leaves no trace");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            bell.ring_if_asleep();
        });
        assert!(fabric.sleep(PATIENCE));
    });
    fabric.disarm();
    assert!(fabric.arm(), "a ring ends one sleep");
    bell.ring_if_asleep();
    assert!(fabric.sleep(PATIENCE), "a ring between arm and sleep is not lost");
    fabric.disarm();
}

#[test]
fn peer_loss_reports_its_cause() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let mut last = members.pop().expect("three");
        let mut middle = members.pop().expect("two");
        let mut first = members.pop().expect("one");
        last.fabric.leave();
        assert_eq!(
            first.loss(),
            Event::PeerLost { view: VIEW, peer: Rank(2), cause: LossCause::Left }
        );
        assert_eq!(
            middle.loss(),
            Event::PeerLost { view: VIEW, peer: Rank(2), cause: LossCause::Left }
        );
        middle.fabric.cut(VIEW, Rank(0));
        assert_eq!(
            first.loss(),
            Event::PeerLost { view: VIEW, peer: Rank(1), cause: LossCause::Denied }
        );
        assert_eq!(middle.events(), [], "the member that cuts is told nothing");
    }
    let mut members = members(None, Settings::default());
    members.remove(1);
    assert_eq!(
        members[0].loss(),
        Event::PeerLost { view: VIEW, peer: Rank(1), cause: LossCause::Exited }
    );
}

#[test]
fn leave_is_detected_despite_write_to_leaver() {
    let mut members = members(None, Settings::default());
    let mut last = members.pop().expect("three");
    last.fabric.leave();
    drop(last);
    for _ in 0..20 {
        // The first post may be sent, but its answer is a reset.
        let _ = members[0].fabric.post(VIEW, Rank(2), &[guard(0)], None);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(
        members[0].loss(),
        Event::PeerLost { view: VIEW, peer: Rank(2), cause: LossCause::Left }
    );
}

#[test]
fn views_on_one_connection_never_share_writes() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let (a, b) = (Rank(0), Rank(1));
        // One member is ahead. The others are not ready for it, so it posts nothing.
        let rows_a = members[0].open(NEXT).expect("it opens");
        settle(&mut members);
        assert!(!members[0].fabric.ready(NEXT, b));
        assert_eq!(members[0].fabric.post(NEXT, b, &[guard(8)], None), Err(ErrorKind::QueueFull));
        let rows_b = members[1].open(NEXT).expect("it opens");
        settle(&mut members);
        let ready = Event::Ready { view: NEXT, peer: b };
        assert_eq!(members[0].events(), [ready]);
        assert!(members[0].fabric.ready(NEXT, b) && !members[0].fabric.ready(NEXT, Rank(2)));
        // The same offset in two views refers to separate memory.
        rows_a.row().cell(8).expect("a cell").publish(2);
        members[0].rows.row().cell(8).expect("a cell").publish(1);
        members[0].fabric.post(NEXT, b, &[guard(8)], None).expect("it is ready");
        members[0].fabric.post(VIEW, b, &[guard(8)], None).expect("it is open");
        settle(&mut members);
        let seen = |rows: &tramontane_tcp::Rows| rows.rows()[0].cell(8).expect("a cell").load();
        assert_eq!((seen(&members[1].rows), seen(&rows_b)), (1, 2));
        // One member ends the old view. Posts from the other member are dropped there.
        assert!(members[1].fabric.retire(VIEW));
        members[0].rows.row().cell(8).expect("a cell").publish(3);
        rows_a.row().cell(8).expect("a cell").publish(4);
        members[0].fabric.post(VIEW, b, &[guard(8)], None).expect("it cannot know");
        members[0].fabric.post(NEXT, b, &[guard(8)], None).expect("it is ready");
        settle(&mut members);
        assert_eq!((seen(&members[1].rows), seen(&rows_b)), (1, 4));
        assert!(members[1].open(VIEW).is_err(), "a view that ended never comes again");
        assert!(members[0].open(NEXT).is_err(), "it is open");
        assert!(members[0].fabric.retire(VIEW) && members[0].fabric.retire(VIEW));
        assert_eq!(members[0].fabric.post(VIEW, b, &[guard(8)], None), Err(ErrorKind::Other));
        assert_eq!(members[1].fabric.post(NEXT, a, &[guard(8)], None), Ok(()));
    }
}

#[test]
fn ending_view_during_list_keeps_stream_intact() {
    for key in [None, key()] {
        let mut members = members(key, small());
        let rows = members[0].open(NEXT).expect("it opens");
        let rows_b = members[1].open(NEXT).expect("it opens");
        settle(&mut members);
        let old = members[0].rows.clone();
        let old = old.row();
        for offset in (0..ROW_BYTES).step_by(8) {
            old.cell(offset).expect("a cell").publish(5);
        }
        let taken = crowd(&mut members[0], VIEW, Rank(1));
        assert!(members[0].fabric.retire(VIEW));
        // The memory may be reused, because nobody sees its content any longer.
        for offset in (0..ROW_BYTES).step_by(8) {
            old.cell(offset).expect("a cell").publish(u64::MAX);
        }
        let told = members[0]
            .events()
            .into_iter()
            .filter(|event| matches!(event, Event::Completed(_)))
            .count();
        assert!(told < usize::try_from(taken).expect("few"), "nobody is told of what was given up");
        settle(&mut members);
        rows.row().cell(8).expect("a cell").publish(6);
        members[0].fabric.post(NEXT, Rank(1), &[guard(8)], None).expect("there is room");
        settle(&mut members);
        assert_eq!(rows_b.rows()[0].cell(8).expect("a cell").load(), 6);
        let copy = members[1].copy(Rank(0));
        assert!(!copy.contains(&0xff), "memory of a view that ended was read");
    }
}

#[test]
fn lost_node_rejoins_only_as_new_process() {
    let mut members = members(key(), Settings::default());
    drop(members.remove(1));
    members[0].loss();
    // The member meets the others again, because nothing reconnects by itself.
    let mut again = connections(key());
    let came = again[0][1].take().expect("a connection");
    members[0].fabric.add_peer(ids()[1], came).expect("its place is free");
    let twice = again[0][2].take().expect("a connection");
    assert!(members[0].fabric.add_peer(ids()[2], twice).is_err(), "that peer is there");
    let mut came = TcpMember::new(Rank(1), again.swap_remove(1), Settings::default());
    let (first, second) =
        (members[0].open(NEXT).expect("it opens"), came.open(NEXT).expect("it opens"));
    members.push(came);
    settle(&mut members);
    assert!(members[0].fabric.ready(NEXT, Rank(1)) && members[2].fabric.ready(NEXT, Rank(0)));
    let old = members[0].fabric.post(VIEW, Rank(1), &[guard(8)], None);
    assert_eq!(old, Err(ErrorKind::PeerLost), "in the old view it is gone");
    first.row().cell(8).expect("a cell").publish(5);
    members[0].fabric.post(NEXT, Rank(1), &[guard(8)], None).expect("it is ready");
    settle(&mut members);
    assert_eq!(second.rows()[0].cell(8).expect("a cell").load(), 5);
}

#[test]
fn listening_ends_once_all_members_are_connected() {
    let (listeners, addresses) = listeners(MEMBERS);
    let _connections = meet(listeners, &addresses, key());
    for address in addresses {
        assert!(TcpStream::connect(address).is_err(), "a stranger reaches a group that has met");
    }
}
