//! Nothing is allocated after start: a program of its own, since an allocator is the whole
//! program's.

#[path = "../../tests/allocation_support/mod.rs"]
mod allocation_support;
#[path = "members/support/mod.rs"]
mod support;

use std::time::Duration;

use allocation_support::of_this_thread;
use support::blocks::{carriers, received, sent, way};
use support::{Place, VIEW, join_all, small};
use tramontane_core::fabric::{
    Blocks as _, Channel, Event, Fabric as _, HostFabric as _, Kind, Token, Write,
};
use tramontane_core::ids::Rank;

#[test]
fn nothing_is_allocated_after_start() {
    let place = Place::new();
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
    // The queue of completions filled to its end, and a sleep, a ring, and a look at the peers.
    while one.post(VIEW, Rank(1), &write, Some(Token(0))).is_ok() {}
    while one.poll().is_some() {}
    assert!(one.arm());
    two.wake(VIEW, Rank(0));
    one.sleep(Duration::from_secs(1));
    one.disarm();
    assert_eq!(one.poll(), Some(Event::Woken));
    assert!(!one.check_peers());
    assert_eq!(of_this_thread(), before, "while all is well");
    // Leaving lists a folder, which is not on any message's path.
    second.mappings.leave();
    let before = of_this_thread();
    assert!(one.check_peers());
    assert!(matches!(one.poll(), Some(Event::PeerLost { .. })));
    assert_eq!(of_this_thread(), before, "when a peer is lost");
}

#[test]
fn nothing_is_allocated_for_a_block_once_its_channel_and_memory_were_used() {
    let place = Place::new();
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
    // A window full of receives and sends, and an end of it.
    while two.receive(way(1, 0), 0, 8, 0).is_ok() {}
    for token in 0..16 {
        one.send(way(1, 1), 0, 8, token).expect("posted");
    }
    two.fabric.carry_blocks();
    two.fabric.close(VIEW, Channel(1));
    assert_eq!(of_this_thread(), before);
}
