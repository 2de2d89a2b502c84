//! Receives, credits, and peers that violate the protocol.

use tramontane_core::fabric::{ErrorKind, Event, Fabric as _, LossCause, Token};
use tramontane_verbs::Limits;
use tramontane_verbs::fake::{Clock, Network, Placement, PortProfile, Profile};

use super::bench::{
    A, B, ConnectedPair, ROW_BYTES, VIEW, by_updates, content, guard, member, reordering, site,
};

#[test]
fn member_that_never_polls_is_not_overrun() {
    let mut pair = ConnectedPair::new(reordering(Placement::WritesReordered), &by_updates(), 1);
    let mut posted = 0;
    for round in 1..=100_u64 {
        pair.a.publish(0, round);
        if pair.a.post(B, &[guard(0, 8)]).is_ok() {
            posted = round;
        }
        pair.pass(100_000);
        pair.a.poll();
    }
    assert_eq!(posted, 31, "one receive is kept for what gives room");
    assert_eq!(pair.b.seen(A, 0), 0, "who does not poll does not see");
    assert_eq!(pair.network.counts().not_ready, 0, "no request found no receive");
    pair.b.poll();
    assert_eq!(pair.b.seen(A, 0), posted, "one poll takes all that came");
    pair.settle();
    pair.a.publish(0, 1000);
    assert_eq!(pair.a.post(B, &[guard(0, 8)]), Ok(()));
    pair.settle();
    assert_eq!(pair.b.seen(A, 0), 1000);
}

#[test]
fn free_queue_space_wakes_the_sleeper() {
    let mut pair = ConnectedPair::new(reordering(Placement::WritesReordered), &by_updates(), 1);
    while pair.a.post(B, &[guard(0, 8)]).is_ok() {}
    // The member's posts, and the notice that it sleeps, are acknowledged, but free no room.
    let sleeps = |pair: &mut ConnectedPair| {
        let may_sleep = pair.a.fabric.arm();
        pair.pass(1_000_000);
        may_sleep && !pair.a.fabric.sleep(std::time::Duration::ZERO)
    };
    let tries = (0..10).take_while(|_| {
        assert_eq!(pair.a.post(B, &[guard(0, 8)]), Err(ErrorKind::QueueFull));
        !sleeps(&mut pair)
    });
    assert!(tries.count() < 5, "it sleeps on");
    pair.b.poll();
    pair.pass(1_000_000);
    assert!(pair.a.fabric.sleep(std::time::Duration::ZERO), "room came");
    pair.a.fabric.disarm();
    assert_eq!(pair.a.post(B, &[guard(0, 8)]), Ok(()));
}

#[test]
fn one_poll_applies_all_arrived_updates() {
    let limits = Limits { signal_every: 1, ..by_updates() };
    let mut pair = ConnectedPair::new(reordering(Placement::WritesReordered), &limits, 1);
    let mut posted = 0;
    while posted < 31 {
        posted += 1;
        pair.a.publish(0, posted);
        assert_eq!(pair.a.post(B, &[guard(0, 8)]), Ok(()));
        // The completion arrives in between.
        assert_eq!(pair.b.post(A, &[guard(0, 8)]), Ok(()));
        pair.pass(100_000);
    }
    assert_eq!(pair.b.fabric.poll(), None);
    assert_eq!(pair.b.seen(A, 0), posted);
}

#[test]
fn two_saturated_members_never_deadlock() {
    for seed in 0..5 {
        let mut pair =
            ConnectedPair::new(reordering(Placement::BytesReordered), &by_updates(), seed);
        let (mut to_b, mut to_a) = (0, 0);
        for turn in 0..20_000_u64 {
            pair.a.publish(0, to_b + 1);
            to_b += u64::from(pair.a.post(B, &[guard(0, 8)]).is_ok());
            pair.b.publish(0, to_a + 1);
            to_a += u64::from(pair.b.post(A, &[guard(0, 8)]).is_ok());
            pair.pass(150);
            // First one of the two members stops polling for a while, then the other.
            if turn / 64 % 3 != 0 {
                pair.a.poll();
            }
            if turn / 64 % 3 != 1 {
                pair.b.poll();
            }
        }
        pair.settle();
        assert!(to_a > 1000 && to_b > 1000, "{to_a} {to_b}");
        assert_eq!(pair.network.counts().not_ready, 0, "no request found no receive");
        assert!(pair.b.seen(A, 0) >= to_b && pair.a.seen(B, 0) >= to_a);
        assert_eq!(pair.a.post(B, &[guard(0, 8)]), Ok(()));
    }
}

#[test]
fn overlapping_long_write_waits_for_the_peer() {
    let mut pair = ConnectedPair::new(reordering(Placement::BytesReordered), &by_updates(), 3);
    let list = [content(0, 2000), guard(4096, 8)];
    assert_eq!(pair.a.post(B, &list), Ok(()));
    for _ in 0..20 {
        assert_eq!(pair.a.post(B, &list), Err(ErrorKind::QueueFull), "it could land first");
    }
    assert_eq!(pair.a.post(B, &[content(2000, 2000), guard(4104, 8)]), Ok(()), "it meets nothing");
    let updates = pair.a.fabric.counters().updates;
    assert_eq!(updates, 3, "two lists, and the peer is asked once");
    // The peer sends nothing but the answer.
    pair.pass(1_000_000);
    pair.b.poll();
    pair.pass(1_000_000);
    pair.a.poll();
    assert_eq!(pair.a.post(B, &list), Ok(()));
    assert_eq!(pair.b.fabric.counters().updates, 1, "{:?}", pair.b.fabric.counters());
}

#[test]
fn long_write_waits_for_overlapping_short_writes() {
    let mut pair = ConnectedPair::new(reordering(Placement::BytesReordered), &by_updates(), 3);
    for short in [guard(64, 8), content(1995, 30)] {
        assert_eq!(pair.a.post(B, &[short]), Ok(()));
        let list = [content(0, 2000)];
        assert_eq!(pair.a.post(B, &list), Err(ErrorKind::QueueFull), "it would be overwritten");
        pair.settle();
        assert_eq!(pair.a.post(B, &list), Ok(()));
        pair.settle();
    }
}

#[test]
fn update_always_contains_the_guards() {
    let mut pair = ConnectedPair::new(Profile::strict(), &by_updates(), 3);
    let contents = (0..8).map(|at| content(at * 256, 256));
    let guards = (0..8).map(|at| guard(8192 + at * 64, 64));
    let list: Vec<_> = contents.chain(guards).collect();
    for write in &list {
        pair.a.store(write.source.offset, &vec![5; write.length]);
    }
    assert_eq!(pair.a.post(B, &list), Ok(()));
    pair.pass(1_000_000);
    assert_eq!(pair.b.bytes(A, 8192, 512), [0; 512], "nobody polled");
    let alone = (0..8).filter(|at| pair.b.bytes(A, at * 256, 256) == [5; 256]).count();
    assert_eq!(alone, 5, "three have room beside the guards");
    pair.b.poll();
    assert_eq!(pair.b.bytes(A, 8192, 512), [5; 512]);
    assert_eq!(pair.b.bytes(A, 0, 2048), [5; 2048]);
}

#[test]
fn guard_overlapping_later_content_is_refused() {
    let mut pair = ConnectedPair::new(Profile::strict(), &by_updates(), 4);
    let crossed = [guard(64, 8), content(0, 2000)];
    assert_eq!(pair.a.post(B, &crossed), Err(ErrorKind::OutOfRange));
    let straight = [content(0, 2000), guard(64, 8)];
    assert_eq!(pair.a.post(B, &straight), Ok(()));
}

#[test]
fn longest_list_wakes_sleeper_and_arrives() {
    let mut pair = ConnectedPair::new(reordering(Placement::WritesReordered), &by_updates(), 5);
    assert!(pair.b.fabric.arm());
    pair.pass(1_000_000);
    pair.a.poll();
    let list: Vec<_> = (0..16).map(|at| content(at * 1024, 1000)).collect();
    for at in 0..16 {
        pair.a.store(at * 1024, &[7; 1000]);
    }
    assert_eq!(pair.a.fabric.post(VIEW, B, &list, Some(Token(9))), Ok(()));
    pair.pass(1_000_000);
    assert!(pair.b.fabric.sleep(std::time::Duration::ZERO), "it is rung");
    assert_eq!(pair.a.poll(), [Event::Completed(Token(9))]);
    assert!((0..16).all(|at| pair.b.bytes(A, at * 1024, 1000) == [7; 1000]));
}

#[test]
fn update_outside_the_row_loses_its_sender() {
    let network = Network::new(6, Clock::Virtual);
    // The packets are short, so that the full one of the start still lands in B's memory.
    let port = PortProfile { mtu_bytes: 1024, ..PortProfile::default() };
    let profile = || Profile { ports: vec![port.clone()], ..Profile::strict() };
    let sites = [A, B].map(|_| site(&network, profile(), &by_updates()).expect("a site"));
    // B believes that A's row is shorter, but A does not know that.
    const SHORTER: usize = ROW_BYTES - 1024;
    let mut a = member(&sites[0], A, [ROW_BYTES; 2]);
    let mut b = member(&sites[1], B, [SHORTER, ROW_BYTES]);
    let of_a = a.fabric.card_for(B);
    let mut of_b = b.fabric.card_for(A);
    let bytes = of_b.len() - 8;
    of_b[bytes..].copy_from_slice(&(ROW_BYTES as u64).to_le_bytes());
    assert!(a.fabric.connect(B, &of_b) && b.fabric.connect(A, &of_a));
    a.fabric.admit(B);
    b.fabric.admit(A);
    for _ in 0..100 {
        network.run_until(network.now_ns() + 10_000);
        a.poll();
        b.poll();
    }
    assert_eq!(a.post(B, &[guard(SHORTER - 8, 8)]), Ok(()));
    network.run_until(network.now_ns() + 1_000_000);
    assert_eq!(b.poll(), [], "the last cell of its copy");
    assert_eq!(a.post(B, &[guard(SHORTER, 8)]), Ok(()));
    network.run_until(network.now_ns() + 1_000_000);
    let lost = Event::PeerLost { view: VIEW, peer: A, cause: LossCause::Misbehaved };
    assert_eq!(b.poll(), [lost]);
}

#[test]
fn both_members_retire_with_updates_in_flight() {
    let mut pair = ConnectedPair::new(reordering(Placement::BytesReordered), &by_updates(), 7);
    let mut posted = 0;
    for round in 1..=20_u64 {
        pair.a.publish(0, round);
        posted += u64::from(pair.a.post(B, &[guard(0, 8)]).is_ok());
    }
    let mut ended = [false; 2];
    for _ in 0..100 {
        ended[0] = pair.a.fabric.retire(VIEW);
        pair.pass(100_000);
        pair.b.poll();
        if ended[0] {
            // Everything that was posted before the end is visible.
            assert_eq!(pair.b.seen(A, 0), posted);
            ended[1] = pair.b.fabric.retire(VIEW);
        }
    }
    assert_eq!(ended, [true; 2]);
}
