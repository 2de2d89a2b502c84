//! Blocks: they arrive in order, complete and with their number, over many channels, while memory
//! comes and goes. Also the cost of a block without a receive.

use std::time::{Duration, Instant};

use tramontane_core::fabric::{
    Area, BlockEvent, BlockStore as _, BlockUse, Blocks, Channel, ErrorKind, Event, Fabric as _,
    HostBlocks as _, LossCause, Region, Token, Way,
};
use tramontane_core::ids::Rank;
use tramontane_verbs::{BlockMemory, Limits};

use super::group::{GroupShape, VIEW};
use super::{A, B, OpenMember, drain, pair, settle, wait_for};

const SOON: Duration = Duration::from_secs(10);

fn shape() -> GroupShape {
    let limits = Limits { loss_time: Duration::from_millis(300), ..Limits::default() };
    GroupShape { blocks: true, limits, ..GroupShape::default() }
}

fn way(peer: Rank) -> Way {
    on(0, peer)
}

fn on(channel: u16, peer: Rank) -> Way {
    Way { view: VIEW, channel: Channel(channel), peer }
}

/// Allocates memory that the member's fabric knows.
fn made(member: &OpenMember, bytes: usize) -> BlockMemory {
    member.fabric.block_store().memory(bytes, BlockUse::Both).expect("memory")
}

fn fill(memory: &mut BlockMemory, offset: usize, bytes: &[u8]) {
    memory.write(offset, bytes).expect("inside");
}

fn look(memory: &BlockMemory, offset: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    memory.read(offset, &mut bytes).expect("inside");
    bytes
}

/// Waits for the next event of a member, while the other makes progress too.
fn next(member: &mut OpenMember, other: &mut OpenMember) -> BlockEvent {
    let mut event = None;
    wait_for("a block's event", SOON, || {
        other.fabric.collect();
        event = member.fabric.poll_block();
        event.is_some()
    });
    event.expect("waited for")
}

/// Waits until a member loses its peer, and returns the cause.
fn loss(member: &mut OpenMember, other: &mut OpenMember) -> LossCause {
    let mut cause = None;
    wait_for("the loss", SOON, || {
        other.fabric.collect();
        cause = drain(&mut member.fabric).into_iter().find_map(|event| match event {
            Event::PeerLost { cause, .. } => Some(cause),
            _ => None,
        });
        cause.is_some()
    });
    cause.expect("waited for")
}

#[test]
fn blocks_arrive_complete_and_in_order() {
    const BYTES: usize = 100_000;
    let (mut a, mut b) = pair(&shape());
    let (mut from, into) = (made(&a, 4 * BYTES), made(&b, 4 * BYTES));
    println!("{:?}", a.fabric.block_limits());
    for round in 0..5_u8 {
        for index in 0..4_u8 {
            let token = Token(u64::from(index));
            let at = usize::from(index) * BYTES;
            b.fabric.post_receive(way(A), into.area(at), BYTES, token).expect("few are posted");
            fill(&mut from, at, &vec![10 * round + index + 1; BYTES]);
        }
        for index in 0..4_u8 {
            let (at, number) = (usize::from(index) * BYTES, u32::from(index) + 0xffff_ff00);
            let length = if index == 3 { 17 } else { BYTES };
            a.fabric.send(way(B), from.area(at), length, number, Token(7)).expect("room");
        }
        for index in 0..4_u8 {
            let length = if index == 3 { 17 } else { BYTES };
            let token = Token(u64::from(index));
            let immediate = u32::from(index) + 0xffff_ff00;
            let seen = next(&mut b, &mut a);
            assert_eq!(seen, BlockEvent::Received { way: way(A), token, immediate, length });
            let bytes = look(&into, usize::from(index) * BYTES, length);
            assert!(bytes.iter().all(|byte| *byte == 10 * round + index + 1));
            assert_eq!(next(&mut a, &mut b), BlockEvent::Sent { way: way(B), token: Token(7) });
        }
    }
    assert!(a.fabric.poll_block().is_none() && b.fabric.poll_block().is_none());
    assert!(drain(&mut a.fabric).is_empty(), "blocks are not told of as lists");
    let counters = a.fabric.counters();
    println!(
        "{} blocks, {} messages sent, {} taken",
        counters.blocks, counters.block_messages, counters.block_messages_taken
    );
    assert_eq!(counters.blocks, 20);
}

#[test]
fn block_costs_one_write_and_two_messages() {
    const BLOCKS: u64 = 16;
    let (mut a, mut b) = pair(&shape());
    let (from, into) = (made(&a, 8), made(&b, 8));
    for _ in 0..BLOCKS {
        b.fabric.post_receive(way(A), into.area(0), 8, Token(0)).expect("room");
    }
    settle(&mut b);
    settle(&mut a);
    let before = [&a, &b].map(|member| *member.fabric.counters());
    for _ in 0..BLOCKS {
        a.fabric.send(way(B), from.area(0), 8, 0, Token(0)).expect("room");
    }
    for _ in 0..BLOCKS {
        next(&mut b, &mut a);
        next(&mut a, &mut b);
    }
    let [sender, receiver] = [&a, &b].map(|member| *member.fabric.counters());
    println!("sender: {sender:?}\nreceiver: {receiver:?}");
    assert_eq!(sender.blocks, BLOCKS);
    // One arrival notice per block, and a credit for the earlier offers, which none of these
    // answered.
    assert_eq!(sender.block_messages - before[0].block_messages, BLOCKS);
    assert_eq!(before[0].block_messages, 1);
    assert_eq!(sender.doorbells - before[0].doorbells, 2 * BLOCKS);
    // One offer per block, and a credit for the notices.
    assert_eq!((before[1].block_messages, receiver.block_messages), (BLOCKS, BLOCKS + 1));
    assert_eq!(receiver.doorbells - before[1].doorbells, 1);
}

#[test]
fn many_channels_carry_blocks_in_both_directions() {
    const BYTES: usize = 500;
    const CHANNELS: u16 = 200;
    let (mut a, mut b) = pair(&shape());
    let all = 2 * usize::from(CHANNELS) * BYTES;
    let mut memories = [made(&a, all), made(&b, all)];
    let place = |channel: u16| usize::from(channel) * BYTES;
    let received = place(CHANNELS);
    for channel in 0..CHANNELS {
        let byte = u8::try_from(channel % 251).expect("small");
        for memory in &mut memories {
            fill(memory, place(channel), &[byte; BYTES]);
        }
        for (member, memory, peer) in [(&mut a, &memories[0], B), (&mut b, &memories[1], A)] {
            let into = memory.area(received + place(channel));
            member
                .fabric
                .post_receive(on(channel, peer), into, BYTES, Token(u64::from(channel)))
                .expect("room");
            let from = memory.area(place(channel));
            let number = u32::from(channel);
            member.fabric.send(on(channel, peer), from, BYTES, number, Token(9)).expect("room");
        }
    }
    for memory in [0, 1] {
        let mut missing = 2 * usize::from(CHANNELS);
        wait_for("all blocks", 3 * SOON, || {
            let (one, other) = if memory == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
            other.fabric.collect();
            while let Some(event) = one.fabric.poll_block() {
                missing -= 1;
                let BlockEvent::Received { way, token, immediate, length } = event else {
                    continue;
                };
                let channel = way.channel.0;
                assert_eq!((token, immediate), (Token(u64::from(channel)), u32::from(channel)));
                let byte = u8::try_from(channel % 251).expect("small");
                assert_eq!(
                    look(&memories[memory], received + place(channel), length),
                    [byte; BYTES]
                );
            }
            missing == 0
        });
    }
    assert!(drain(&mut a.fabric).is_empty() && drain(&mut b.fabric).is_empty());
}

#[test]
fn closed_channel_releases_memory_after_both_ends() {
    const BYTES: usize = 1 << 20;
    let (mut a, mut b) = pair(&shape());
    for round in 0..10 {
        let channel = round;
        let (from, into) = (made(&a, BYTES), made(&b, BYTES));
        assert_eq!(
            (from.region(), into.region()),
            (Region(1), Region(1)),
            "round {round}: the last is still there"
        );
        b.fabric.post_receive(on(channel, A), into.area(0), BYTES, Token(1)).expect("room");
        a.fabric.send(on(channel, B), from.area(0), BYTES, 5, Token(2)).expect("room");
        if round % 2 == 0 {
            // The block may have been sent halfway.
            b.fabric.collect();
            a.fabric.collect();
        }
        drop((from, into));
        let next = b.fabric.block_store().memory(8, BlockUse::Both).expect("memory");
        assert_eq!(next.region(), Region(2), "a receive is posted into it");
        drop(next);
        a.fabric.close(VIEW, Channel(channel));
        b.fabric.close(VIEW, Channel(channel));
        for _ in 0..3 {
            settle(&mut a);
            settle(&mut b);
        }
        assert!(a.fabric.poll_block().is_none() && b.fabric.poll_block().is_none());
    }
    assert!(drain(&mut a.fabric).is_empty() && drain(&mut b.fabric).is_empty());
}

#[test]
fn blocks_require_registered_memory_and_bounded_receives() {
    let (mut a, b) = pair(&shape());
    let (memory, _theirs) = (made(&a, 1 << 20), made(&b, 8));
    let most = a.fabric.block_limits().receives_max;
    for index in 0..most {
        a.fabric
            .post_receive(way(B), memory.area(index * 8), 8, Token(0))
            .expect("not too many yet");
    }
    assert_eq!(
        a.fabric.post_receive(way(B), memory.area(0), 8, Token(0)),
        Err(ErrorKind::QueueFull)
    );
    let only_sent = a.fabric.block_store().memory(8, BlockUse::Send).expect("memory");
    let outside = memory.area((1 << 20) - 4);
    let row = Area { region: Region::ROW, offset: 0 };
    let nowhere = Area { region: Region(77), offset: 0 };
    for area in [outside, row, nowhere] {
        assert_eq!(
            a.fabric.send(way(B), area, 8, 0, Token(0)),
            Err(ErrorKind::OutOfRange),
            "not there"
        );
    }
    assert_eq!(
        a.fabric.post_receive(on(1, B), only_sent.area(0), 8, Token(0)),
        Err(ErrorKind::OutOfRange)
    );
    assert_eq!(a.fabric.send(way(A), memory.area(0), 8, 0, Token(0)), Err(ErrorKind::OutOfRange));
    a.fabric.send(way(B), only_sent.area(0), 8, 0, Token(0)).expect("room");
}

#[test]
fn oversized_block_loses_peer_but_no_memory() {
    let (mut a, mut b) = pair(&shape());
    let (mut from, into) = (made(&a, 200), made(&b, 200));
    b.fabric.post_receive(way(A), into.area(0), 100, Token(1)).expect("few are posted");
    fill(&mut from, 0, &[5; 200]);
    a.fabric.send(way(B), from.area(0), 200, 1, Token(2)).expect("room");
    assert_eq!(loss(&mut a, &mut b), LossCause::Unreachable);
    assert_eq!(look(&into, 0, 200), [0; 200], "nothing lands");
}

#[test]
fn block_without_a_receive_loses_the_peer() {
    let (mut a, mut b) = pair(&shape());
    let from = made(&a, 8);
    a.fabric.send(way(B), from.area(0), 8, 1, Token(2)).expect("room");
    assert_eq!(loss(&mut a, &mut b), LossCause::Unreachable);
}

/// B waits for a block, and A for the notice that it has arrived: neither polls while asleep.
#[test]
fn arriving_block_wakes_a_sleeping_member() {
    let (mut a, mut b) = pair(&shape());
    let (from, into) = (made(&a, 8), made(&b, 8));
    b.fabric.post_receive(way(A), into.area(0), 8, Token(1)).expect("room");
    settle(&mut b);
    let sleeper = std::thread::spawn(move || {
        let started = Instant::now();
        while b.fabric.poll_block().is_none() {
            assert!(started.elapsed() < SOON, "it never came");
            if b.fabric.arm() {
                b.fabric.sleep(SOON);
            }
            b.fabric.disarm();
        }
        (b, into, started.elapsed())
    });
    std::thread::sleep(Duration::from_millis(200));
    a.fabric.send(way(B), from.area(0), 8, 0, Token(2)).expect("room");
    while a.fabric.poll_block().is_none() {
        if a.fabric.arm() {
            assert!(a.fabric.sleep(SOON), "nothing came");
        }
        a.fabric.disarm();
    }
    let (_, _, slept) = sleeper.join().expect("it wakes");
    println!("woken after {slept:?}");
    assert!(slept < SOON);
}
