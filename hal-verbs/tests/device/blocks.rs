//! Blocks: in order, whole, with their number; and what a block without a receive costs.

use std::time::Duration;

use tramontane_core::fabric::{
    Area, BlockEvent, Blocks, Channel, ErrorKind, Event, LossCause, Region, Token, Way,
};
use tramontane_core::ids::Rank;
use tramontane_verbs::{Limits, RegionMemory};

use super::group::{Shape, VIEW};
use super::{A, B, Member, drain, pair, wait_for};

const BLOCKS: Region = Region(9);
const SOON: Duration = Duration::from_secs(10);

fn shape() -> Shape {
    let limits = Limits { loss_time: Duration::from_millis(300), ..Limits::default() };
    Shape { blocks: Some(RegionMemory { region: BLOCKS, bytes: 1 << 20 }), limits, ..Shape::default() }
}

fn area(offset: usize) -> Area {
    Area { region: BLOCKS, offset }
}

fn way(peer: Rank) -> Way {
    Way { view: VIEW, channel: Channel(0), peer }
}

fn fill(member: &Member, offset: usize, bytes: &[u8]) {
    member.rows.region(BLOCKS).expect("block memory").apply(offset, bytes).expect("inside");
}

fn look(member: &Member, offset: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    member.rows.region(BLOCKS).expect("block memory").reader().read(offset, &mut bytes).expect("inside");
    bytes
}

fn next(member: &mut Member) -> BlockEvent {
    let mut event = None;
    wait_for("a block's event", SOON, || {
        event = member.fabric.poll_block();
        event.is_some()
    });
    event.expect("waited for")
}

#[test]
fn blocks_come_whole_and_in_order_with_their_number() {
    const BYTES: usize = 100_000;
    let (mut a, mut b) = pair(&shape());
    let limits = a.fabric.block_limits();
    println!("{limits:?}");
    for round in 0..5_u8 {
        for index in 0..4_u8 {
            let token = Token(u64::from(index));
            let at = usize::from(index) * BYTES;
            b.fabric.post_receive(way(A), area(at), BYTES, token).expect("few are posted");
            fill(&a, at, &vec![10 * round + index + 1; BYTES]);
        }
        for index in 0..4_u8 {
            let (at, number) = (usize::from(index) * BYTES, u32::from(index) + 0xffff_ff00);
            let length = if index == 3 { 17 } else { BYTES };
            a.fabric.send(way(B), area(at), length, number, Token(7)).expect("room");
        }
        for index in 0..4_u8 {
            let length = if index == 3 { 17 } else { BYTES };
            let token = Token(u64::from(index));
            let immediate = u32::from(index) + 0xffff_ff00;
            assert_eq!(next(&mut b), BlockEvent::Received { way: way(A), token, immediate, length });
            let bytes = look(&b, usize::from(index) * BYTES, length);
            assert!(bytes.iter().all(|byte| *byte == 10 * round + index + 1));
            assert_eq!(next(&mut a), BlockEvent::Sent { way: way(B), token: Token(7) });
        }
    }
    assert!(a.fabric.poll_block().is_none() && b.fabric.poll_block().is_none());
    assert!(drain(&mut a.fabric).is_empty(), "blocks are not told of as lists");
}

#[test]
fn few_receives_are_taken_and_ranges_are_checked() {
    let (mut a, _b) = pair(&shape());
    let most = a.fabric.block_limits().receives_max;
    for index in 0..most {
        a.fabric.post_receive(way(B), area(index * 8), 8, Token(0)).expect("not too many yet");
    }
    assert_eq!(a.fabric.post_receive(way(B), area(0), 8, Token(0)), Err(ErrorKind::QueueFull));
    let outside = area((1 << 20) - 4);
    assert_eq!(a.fabric.send(way(B), outside, 8, 0, Token(0)), Err(ErrorKind::OutOfRange));
    let row = Area { region: Region::ROW, offset: 0 };
    assert_eq!(a.fabric.send(way(B), row, 8, 0, Token(0)), Err(ErrorKind::OutOfRange));
    assert_eq!(a.fabric.send(way(A), area(0), 8, 0, Token(0)), Err(ErrorKind::OutOfRange));
}

#[test]
fn a_block_that_does_not_fit_loses_the_peer_and_no_memory() {
    let (mut a, mut b) = pair(&shape());
    b.fabric.post_receive(way(A), area(0), 100, Token(1)).expect("few are posted");
    fill(&a, 0, &[5; 200]);
    a.fabric.send(way(B), area(0), 200, 1, Token(2)).expect("room");
    let mut cause = None;
    wait_for("the loss", SOON, || {
        b.fabric.collect();
        cause = drain(&mut a.fabric).into_iter().find_map(|event| match event {
            Event::PeerLost { cause, .. } => Some(cause),
            _ => None,
        });
        cause.is_some()
    });
    println!("{}", a.fabric.loss_of(B).expect("a loss"));
    assert!(matches!(cause, Some(LossCause::Denied | LossCause::Unreachable)), "{cause:?}");
    assert_eq!(look(&b, 100, 100), [0; 100], "nothing lands behind the receive");
}

#[test]
fn a_block_without_a_receive_loses_the_peer() {
    let (mut a, _b) = pair(&shape());
    a.fabric.send(way(B), area(0), 8, 1, Token(2)).expect("room");
    wait_for("the loss", SOON, || {
        drain(&mut a.fabric).iter().any(|event| matches!(event, Event::PeerLost { .. }))
    });
    println!("{}", a.fabric.loss_of(B).expect("a loss"));
}
