//! Blocks over TCP: many at the same time, alongside writes, to slow peers, and on channels that
//! are closed in the meantime.

use std::time::{Duration, Instant};

use crate::support::blocks::{
    FIRST, exchange, look, memory, on, pattern, receive, received, send, sent, told,
};
use crate::support::{PATIENCE, TcpMember, VIEW, guard, key, members, settle, small};
use tramontane_core::fabric::{
    BlockEvent, Blocks, Channel, ErrorKind, Event, Fabric, HostFabric, Kind, Token, ViewRows as _,
    Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_tcp::{BlockMemory, Settings};

const A: Rank = Rank(0);
const B: Rank = Rank(1);
const C: Rank = Rank(2);

/// A size that exceeds what the kernel buffers for one connection.
const HUGE: usize = 48 << 20;

fn lost(member: &mut TcpMember) -> Option<Event> {
    member.events().into_iter().find(|event| matches!(event, Event::PeerLost { .. }))
}

/// Drives all members until the condition is true.
fn carry_until(members: &mut [TcpMember], mut is_done: impl FnMut(&mut [TcpMember]) -> bool) {
    let start = Instant::now();
    while !is_done(members) {
        for member in &mut *members {
            member.fabric.carry();
        }
        assert!(start.elapsed() < PATIENCE, "it never happens");
    }
}

#[test]
fn blocks_of_all_lengths_arrive_unchanged() {
    const CHANNELS: usize = 200;
    const ROOM: usize = 3000;
    // Lengths near those of one piece, one record and one read.
    let long = [1, 8191, 65_519, 65_520, 262_076, 262_077, 262_144, 262_145, 1 << 20, 3_000_001];
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let bytes = long.iter().sum::<usize>() + 3 * CHANNELS * ROOM;
        let mut memories: Vec<[BlockMemory; 2]> = members
            .iter_mut()
            .map(|member| [memory(member, bytes), memory(member, bytes)])
            .collect();
        let mut blocks: Vec<(Channel, usize, usize)> = Vec::new();
        let mut offset = 0;
        for index in 0..3 * CHANNELS {
            let channel = Channel((index % CHANNELS) as u16 * 5);
            blocks.push((channel, offset, (index * 7) % (ROOM + 1)));
            offset += ROOM;
        }
        for length in long {
            blocks.push((Channel(1023), offset, length));
            offset += length;
        }
        for (from, to) in [(A, B), (B, A)] {
            for (number, (channel, offset, length)) in (0..).zip(&blocks) {
                memories[from.index()][0]
                    .write(*offset, &pattern(number + u32::from(from.0), *length))
                    .expect("in the memory");
                let range = (*offset, (*length).max(1));
                let [_, theirs] = &memories[to.index()];
                receive(&mut members[to.index()], on(*channel, from), theirs, range, number.into());
            }
        }
        for (number, (channel, offset, length)) in (0..).zip(&blocks) {
            for (from, to) in [(A, B), (B, A)] {
                let [own, _] = &memories[from.index()];
                send(&mut members[from.index()], on(*channel, to), own, (*offset, *length), number)
                    .expect("sent");
            }
        }
        let all = exchange(&mut members, 4 * blocks.len());
        for (from, to) in [(A, B), (B, A)] {
            let mut came = Vec::new();
            for event in &all[to.index()] {
                if let BlockEvent::Received { way, token, immediate, length } = *event {
                    assert_eq!(token, Token(immediate.into()), "in the order of its channel");
                    let (channel, offset, sent) = blocks[immediate as usize];
                    assert_eq!((way, length), (on(channel, from), sent));
                    let seen = look(&memories[to.index()][1], offset, length);
                    assert!(
                        seen == pattern(immediate + u32::from(from.0), length),
                        "block {immediate}"
                    );
                    came.push((channel.0, immediate));
                }
            }
            assert_eq!(came.len(), blocks.len());
            for channel in blocks.iter().map(|(channel, ..)| channel.0) {
                let numbers =
                    came.iter().filter(|(on, _)| *on == channel).map(|(_, number)| *number);
                assert!(numbers.is_sorted(), "channel {channel} keeps its order");
            }
        }
        assert_eq!(members.iter_mut().find_map(lost), None);
    }
}

#[test]
fn channels_take_turns_sending_block_pieces() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let (own, theirs) = (memory(&members[0], HUGE), memory(&members[1], 2 * HUGE));
        receive(&mut members[1], on(FIRST, A), &theirs, (0, HUGE), 1);
        for channel in 1..=3 {
            receive(&mut members[1], on(Channel(channel), A), &theirs, (HUGE, 1 << 20), 2);
        }
        send(&mut members[0], on(FIRST, B), &own, (0, HUGE), 1).expect("sent");
        for channel in 1..=3 {
            send(&mut members[0], on(Channel(channel), B), &own, (0, 1 << 20), 2).expect("sent");
        }
        let all = exchange(&mut members, 8);
        for (events, peer) in [(&all[0], B), (&all[1], A)] {
            let last = events.last().expect("four events");
            let (BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. }) = last;
            assert_eq!(*way, on(FIRST, peer), "the long one ends last: {events:?}");
        }
    }
}

#[test]
fn writes_overtake_a_long_block_in_order() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let (mut own, theirs) = (memory(&members[0], HUGE), memory(&members[1], HUGE));
        own.write(0, &pattern(7, HUGE)).expect("in the memory");
        receive(&mut members[1], on(FIRST, A), &theirs, (0, HUGE), 1);
        send(&mut members[0], on(FIRST, B), &own, (0, HUGE), 9).expect("sent");
        let rows = members[0].rows.clone();
        let (mut value, mut seen, mut passed) = (0, 0, 0);
        let mut events = Vec::new();
        carry_until(&mut members, |members| {
            // The content before each guard also contains the number of its write.
            for offset in (1024..9216).step_by(8) {
                rows.row().cell(offset).expect("a cell").publish(value + 1);
            }
            rows.row().cell(512).expect("a cell").publish(value + 1);
            let list = [Write::of_row(1024, 8192, Kind::Content), guard(512)];
            match members[0].fabric.post(VIEW, B, &list, None) {
                Ok(()) => value += 1,
                Err(kind) => assert_eq!(kind, ErrorKind::QueueFull),
            }
            let guard = members[1].cell(A, 512);
            assert!(guard >= seen, "{guard} after {seen}");
            for offset in (1024..9216).step_by(8) {
                assert!(members[1].cell(A, offset) >= guard, "a guard before what it guards");
            }
            passed += u64::from(guard > seen);
            seen = guard;
            events.extend(told(&mut members[1]));
            !events.is_empty()
        });
        assert_eq!(events, [received(on(FIRST, A), 1, 9, HUGE)]);
        assert!(look(&theirs, 0, HUGE) == pattern(7, HUGE));
        assert!(passed > 5, "{passed} writes came while the block did");
        settle(&mut members);
        assert_eq!(members[1].cell(A, 512), value, "none was lost");
    }
}

#[test]
fn stalled_peer_receives_everything_later() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let bytes = 4 << 20;
        let mut memories: Vec<BlockMemory> =
            members.iter_mut().map(|member| memory(member, 16 * bytes)).collect();
        for number in 0..16 {
            let range = (number as usize * bytes, bytes);
            memories[0].write(range.0, &pattern(number, bytes)).expect("in the memory");
            receive(&mut members[1], on(FIRST, A), &memories[1], range, number.into());
        }
        // More blocks than may be in flight, and more bytes than the kernel takes.
        let mut taken = 0;
        let refused = (0..64).find_map(|number: u32| {
            let range = (number as usize % 16 * bytes, bytes);
            let refused = send(&mut members[0], on(FIRST, B), &memories[0], range, number).err();
            taken += u32::from(refused.is_none());
            refused
        });
        assert_eq!(refused, Some(ErrorKind::QueueFull));
        assert!(taken >= 16);
        // The queue is not full because of a block: a list finds room, but the next list does not
        // while the first is waiting.
        assert_eq!(members[0].fabric.post(VIEW, B, &[guard(512)], None), Ok(()));
        assert_eq!(members[0].fabric.post(VIEW, B, &[guard(512)], None), Err(ErrorKind::QueueFull));
        // Another peer, and another channel to the same peer, are not affected.
        receive(&mut members[2], on(FIRST, A), &memories[2], (0, bytes), 3);
        send(&mut members[0], on(FIRST, C), &memories[0], (0, bytes), 5).expect("another peer");
        receive(&mut members[1], on(Channel(7), A), &memories[1], (0, 0), 4);
        send(&mut members[0], on(Channel(7), B), &memories[0], (0, 0), 6).expect("another channel");
        let start = Instant::now();
        let mut came = Vec::new();
        while came.is_empty() {
            members[0].fabric.carry();
            came = told(&mut members[2]);
            assert!(start.elapsed() < PATIENCE, "held up by another peer");
        }
        assert_eq!(came, [received(on(FIRST, A), 3, 5, bytes)]);
        // The receiver begins to read. It posts receives in time for the blocks after the first 16.
        let mut next = 0;
        carry_until(&mut members, |members| {
            for event in told(&mut members[1]) {
                let BlockEvent::Received { way, immediate, .. } = event else {
                    panic!("{event:?}")
                };
                if way.channel == FIRST {
                    assert_eq!(immediate, next);
                    let range = (immediate as usize % 16 * bytes, bytes);
                    assert!(look(&memories[1], range.0, bytes) == pattern(immediate % 16, bytes));
                    receive(&mut members[1], on(FIRST, A), &memories[1], range, 0);
                    next += 1;
                }
            }
            next == taken
        });
        assert_eq!(members.iter_mut().find_map(lost), None);
    }
}

#[test]
fn sender_closing_during_block_keeps_stream_intact() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let (mut own, theirs) = (memory(&members[0], HUGE), memory(&members[1], HUGE + 100));
        own.write(0, &vec![5; HUGE]).expect("in the memory");
        receive(&mut members[1], on(FIRST, A), &theirs, (0, HUGE), 1);
        receive(&mut members[1], on(FIRST, A), &theirs, (0, HUGE), 2);
        receive(&mut members[1], on(Channel(1), A), &theirs, (HUGE, 100), 3);
        send(&mut members[0], on(FIRST, B), &own, (0, HUGE), 1).expect("sent");
        send(&mut members[0], on(FIRST, B), &own, (0, HUGE), 2).expect("sent");
        members[0].fabric.close(VIEW, FIRST);
        own.write(0, &vec![6; HUGE]).expect("in the memory");
        send(&mut members[0], on(Channel(1), B), &own, (0, 100), 4).expect("sent");
        let refused = send(&mut members[0], on(FIRST, B), &own, (0, 1), 5);
        assert_eq!(refused, Err(ErrorKind::OutOfRange));
        let all = exchange(&mut members, 2);
        assert_eq!(all[0], [sent(on(Channel(1), B), 4)]);
        assert_eq!(all[1], [received(on(Channel(1), A), 3, 4, 100)]);
        assert_eq!(look(&theirs, HUGE, 100), [6; 100]);
        assert!(!look(&theirs, 0, HUGE).contains(&6), "memory of a closed channel was read");
        // At the closing member, the other direction of the channel has also ended, but other
        // channels continue at both members.
        receive(&mut members[0], on(Channel(1), B), &own, (0, 100), 1);
        send(&mut members[1], on(Channel(1), A), &theirs, (0, 100), 1).expect("sent");
        exchange(&mut members, 2);
        assert_eq!(members.iter_mut().find_map(lost), None);
    }
}

#[test]
fn receiver_closing_during_block_stores_no_more() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let (mut own, mut theirs) = (memory(&members[0], HUGE), memory(&members[1], HUGE));
        own.write(0, &vec![5; HUGE]).expect("in the memory");
        receive(&mut members[1], on(FIRST, A), &theirs, (0, HUGE), 1);
        send(&mut members[0], on(FIRST, B), &own, (0, HUGE), 1).expect("sent");
        let mut first = [0];
        carry_until(&mut members, |_| {
            theirs.read(0, &mut first).expect("in the memory");
            first != [0]
        });
        members[1].fabric.close(VIEW, FIRST);
        theirs.write(0, &vec![9; HUGE]).expect("in the memory");
        // The sender does not know that the channel has been closed, and sends the whole block and
        // another one.
        send(&mut members[0], on(FIRST, B), &own, (0, HUGE), 2).expect("sent");
        let all = exchange(&mut members, 2);
        assert_eq!(all[0], [sent(on(FIRST, B), 1), sent(on(FIRST, B), 2)]);
        settle(&mut members);
        assert!(look(&theirs, 0, HUGE).iter().all(|byte| *byte == 9), "stored after the end");
        assert_eq!(told(&mut members[1]), []);
        receive(&mut members[1], on(Channel(1), A), &theirs, (0, 100), 3);
        send(&mut members[0], on(Channel(1), B), &own, (0, 100), 4).expect("sent");
        exchange(&mut members, 2);
        assert_eq!(look(&theirs, 0, 100), [5; 100]);
        assert_eq!(members.iter_mut().find_map(lost), None);
    }
}

#[test]
fn ending_view_during_block_keeps_stream_intact() {
    const NEXT: tramontane_core::ids::ViewId = tramontane_core::ids::ViewId(2);
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let (mut own, theirs) = (memory(&members[0], HUGE), memory(&members[1], HUGE));
        let rows = members[0].open(NEXT).expect("it opens");
        let copies = members[1].open(NEXT).expect("it opens");
        settle(&mut members);
        own.write(0, &vec![5; HUGE]).expect("in the memory");
        receive(&mut members[1], on(FIRST, A), &theirs, (0, HUGE), 1);
        send(&mut members[0], on(FIRST, B), &own, (0, HUGE), 1).expect("sent");
        assert!(members[0].fabric.retire(VIEW));
        own.write(0, &vec![6; HUGE]).expect("in the memory");
        rows.row().cell(8).expect("a cell").publish(77);
        let mut is_posted = false;
        carry_until(&mut members, |members| {
            // The kernel does not accept the rest of the block at once.
            is_posted |= members[0].fabric.post(NEXT, B, &[guard(8)], None).is_ok();
            copies.rows()[0].cell(8).expect("a cell").load() == 77
        });
        settle(&mut members);
        assert!(!look(&theirs, 0, HUGE).contains(&6), "memory of a view that ended was read");
        assert!(members[1].fabric.retire(VIEW));
        assert_eq!((told(&mut members[0]), told(&mut members[1])), (vec![], vec![]));
        assert_eq!(members.iter_mut().find_map(lost), None);
    }
}

#[test]
fn block_arrival_and_completion_wake_sleeper() {
    for key in [None, key()] {
        let mut members = members(key, Settings::default());
        let (own, theirs) = (memory(&members[0], HUGE), memory(&members[1], HUGE));
        receive(&mut members[1], on(FIRST, A), &theirs, (0, HUGE), 1);
        let mut rest = members.split_off(1);
        let (mut sender, mut receiver) = (members.pop().expect("one"), rest.remove(0));
        // Both members only sleep and poll.
        fn sleep_and_poll(member: &mut TcpMember, timeout: Duration) -> Option<BlockEvent> {
            while member.fabric.poll().is_some() {}
            let mut is_woken = true;
            if member.fabric.arm() {
                is_woken = member.fabric.sleep(timeout);
            }
            member.fabric.disarm();
            assert!(is_woken || timeout < PATIENCE, "nobody woke {}", member.own);
            member.fabric.poll_block()
        }
        fn await_one(member: &mut TcpMember) -> BlockEvent {
            let start = Instant::now();
            loop {
                if let Some(event) = sleep_and_poll(member, PATIENCE) {
                    return event;
                }
                assert!(start.elapsed() < PATIENCE);
            }
        }
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| await_one(&mut receiver));
            std::thread::sleep(Duration::from_millis(20));
            send(&mut sender, on(FIRST, B), &own, (0, HUGE), 3).expect("sent");
            assert_eq!(await_one(&mut sender), sent(on(FIRST, B), 3));
            // The last record of an encrypted block may still wait for room in the socket.
            while !waiting.is_finished() {
                assert_eq!(sleep_and_poll(&mut sender, Duration::from_millis(10)), None);
            }
            assert_eq!(waiting.join().expect("no panic"), received(on(FIRST, A), 1, 3, HUGE));
        });
        // A pending event keeps its member awake.
        receive(&mut receiver, on(FIRST, A), &theirs, (0, 8), 1);
        send(&mut sender, on(FIRST, B), &own, (0, 8), 4).expect("sent");
        assert!(!sender.fabric.arm(), "a block has gone, and nobody was told");
        sender.fabric.disarm();
    }
}

/// Blocks that the peer would drop are not sent, and none of their bytes are sent after the peer
/// has been answered.
#[test]
fn blocks_to_ended_view_count_as_sent() {
    const BYTES: usize = 4 << 20;
    let next = ViewId(9);
    for key in [None, key()] {
        let mut members = members(key, small());
        let memories = [memory(&members[0], BYTES), memory(&members[1], BYTES)];
        receive(&mut members[1], on(FIRST, A), &memories[1], (0, BYTES), 1);
        for (channel, token) in [(FIRST, 2), (FIRST, 3), (Channel(7), 4)] {
            let way = on(channel, B);
            send(&mut members[0], way, &memories[0], (0, BYTES), token).expect("sent");
        }
        members[1].fabric.carry();
        assert!(members[1].fabric.retire(VIEW));
        let mut seen = Vec::new();
        carry_until(&mut members, |members| {
            seen.extend(told(&mut members[0]));
            seen.len() == 3
        });
        assert!(seen.iter().all(|event| matches!(event, BlockEvent::Sent { .. })), "{seen:?}");
        send(&mut members[0], on(FIRST, B), &memories[0], (0, BYTES), 5).expect("it cannot know");
        assert!(matches!(told(&mut members[0])[..], [BlockEvent::Sent { .. }]));
        for member in &mut members[..2] {
            member.open(next).expect("it opens");
        }
        settle(&mut members);
        assert!(members[0].fabric.ready(next, B) && members[1].fabric.ready(next, A));
        assert_eq!((lost(&mut members[0]), lost(&mut members[1])), (None, None));
    }
}
