//! After the start, nothing is allocated. This is a separate program, because an allocator belongs
//! to a whole program.

#[path = "../../tests/allocation_support/mod.rs"]
mod allocation_support;
#[path = "members/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use allocation_support::of_this_thread;
use support::blocks::{carriers, received, sent, way};
use support::{LONG, NEVER, SharedFolder, VIEW, join_all, name, small};
use tramontane_core::fabric::{
    Area, Blocks as _, Channel, Event, Fabric as _, HostFabric as _, HostRegions as _, Kind,
    PermissionEvent, Permissions as _, Region, Token, ViewPlan, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_shared_memory::{Residence, SharedMemory};

#[test]
fn nothing_is_allocated_after_start() {
    let place = SharedFolder::new();
    let mut members = join_all(&place.root(), "allocation", &small(2));
    let [first, second] = members.as_mut_slice() else { panic!("two members") };
    let (one, two) = (&mut first.fabric, &mut second.fabric);
    let bell = one.local_bell();
    let write = [Write::of_row(0, 8, Kind::Guard)];
    let before = of_this_thread();
    assert!(before > 0, "the counter counts");
    for turn in 0..5000 {
        one.post(VIEW, Rank(1), &write, Some(Token(turn))).expect("posted");
        assert_eq!(one.poll(), Some(Event::Completed(Token(turn))));
        two.post(VIEW, Rank(0), &write, None).expect("posted");
        bell.ring_if_asleep();
        assert_eq!(one.poll(), None);
    }
    // Covers a full queue of completions, a sleep, a ring, and a check of the peers.
    while one.post(VIEW, Rank(1), &write, Some(Token(0))).is_ok() {}
    while one.poll().is_some() {}
    assert!(one.arm());
    two.wake(VIEW, Rank(0));
    one.sleep(Duration::from_secs(1));
    one.disarm();
    assert_eq!(one.poll(), Some(Event::Woken));
    assert!(!one.check_peers());
    assert_eq!(of_this_thread(), before, "while all is well");
    // Leaving lists a folder, which is not on the path of any message.
    second.mappings.leave();
    let before = of_this_thread();
    assert!(one.check_peers());
    assert!(matches!(one.poll(), Some(Event::PeerLost { .. })));
    assert_eq!(of_this_thread(), before, "when a peer is lost");
}

#[test]
fn region_lists_allocate_nothing_after_first_permission() {
    const LOG: Region = Region(1);
    let (place, nodes) = (SharedFolder::new(), [NodeId(1), NodeId(2)]);
    let mut fabrics = nodes.map(|node| {
        let residence =
            Residence::claim(&place.root(), &name("allocation"), node, 1, 1, LONG, &NEVER);
        let mut fabric = SharedMemory::for_residence(&Arc::new(residence.expect("a place")));
        fabric.region(LOG, 1 << 16).expect("memory");
        fabric
    });
    let rows: Vec<_> = (0..)
        .map(Rank)
        .zip(&mut fabrics)
        .map(|(own, fabric)| {
            let plan = ViewPlan::with_sizes(VIEW, own, &nodes, &[64, 64], 9);
            let rows = fabric.rows(&plan).expect("memory");
            fabric.open(VIEW, &rows.memory()).expect("it opens");
            rows
        })
        .collect();
    let area = Area { region: LOG, offset: 104 };
    let write = Write { source: area, target: area, length: 100, kind: Kind::Content };
    let list = [write; 4];
    let [one, two] = &mut fabrics;
    let mut is_granted = false;
    let started = std::time::Instant::now();
    while one.post(VIEW, Rank(1), &list, Some(Token(0))).is_err() {
        one.check_peers();
        two.check_peers();
        while one.poll().is_some() || two.poll().is_some() {}
        is_granted = is_granted || two.grant(VIEW, Rank(0), LOG).is_ok();
        assert!(started.elapsed() < LONG, "it is never taken");
    }
    let before = of_this_thread();
    for turn in 0..3000 {
        while one.post(VIEW, Rank(1), &list, Some(Token(turn))).is_ok() && turn % 3 == 0 {}
        one.read(VIEW, Rank(1), area, Area { region: LOG, offset: 4096 }, 2048, Token(turn))
            .expect("room");
        while two.poll().is_some() {}
        while one.poll().is_some() {}
        // Lists in flight are denied, and the denial is reported.
        if turn % 5 == 0 {
            one.post(VIEW, Rank(1), &list, Some(Token(turn))).expect("room");
            two.revoke(VIEW, Rank(0), LOG).expect("it is there");
            while two.poll().is_some() {}
            while one.poll().is_some() {}
            assert!(matches!(one.poll_permission(), Some(PermissionEvent::Denied { .. })));
            two.grant(VIEW, Rank(0), LOG).expect("it is there");
            while one.poll().is_some() {}
            assert!(matches!(one.poll_permission(), Some(PermissionEvent::Restored { .. })));
        }
    }
    assert_eq!(of_this_thread(), before);
    drop(rows);
}

#[test]
fn blocks_allocate_nothing_after_first_use() {
    let place = SharedFolder::new();
    let mut members = carriers(&place.root(), "allocation-of-blocks", 2, 4 << 20);
    let [one, two] = members.as_mut_slice() else { panic!("two members") };
    let mut before = 0;
    for turn in 0..3000 {
        let (channel, length) =
            ((turn % 3) as u16, 1 + usize::try_from(turn % 7).expect("small") * 99_991);
        if turn == 3 {
            before = of_this_thread();
        }
        for token in 0..4 {
            two.receive(way(channel, 0), 4096, length, token).expect("posted");
            one.send(way(channel, 1), 8192, length, token).expect("posted");
        }
        for token in 0..4 {
            assert_eq!(two.next_block(), received(way(channel, 0), token, length));
        }
        for token in 0..4 {
            assert_eq!(one.next_block(), sent(way(channel, 1), token));
        }
    }
    // Covers a full window of receives and sends, and its end.
    while two.receive(way(1, 0), 0, 8, 0).is_ok() {}
    for token in 0..16 {
        one.send(way(1, 1), 0, 8, token).expect("posted");
    }
    two.fabric.carry_blocks();
    two.fabric.close(VIEW, Channel(1));
    assert_eq!(of_this_thread(), before);
}
