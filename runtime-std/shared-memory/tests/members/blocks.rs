//! Blocks over shared memory, with all members in this process: memory that is created and freed,
//! channels closed in the middle of a copy, and members that lie. `tramontane-conformance` has the
//! contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::blocks::{
    ANSWER, Carrier, ENTRY, POSTED, SETTLED, TAKEN, block_memory, carriers, lie, plan, received,
    sent, way,
};
use crate::support::descriptors::{HEADER, SEALS, Said, memory, send, signed};
use crate::support::{LONG, NEVER, SharedFolder, VIEW, name};
use tramontane_core::fabric::REGIONS_MAX;
use tramontane_core::fabric::{
    Area, BlockEvent, BlockStore as _, BlockUse, Blocks as _, Channel, ErrorKind, Event,
    Fabric as _, HostBlocks as _, HostFabric as _, LossCause, Region, Token, ViewRows as _,
};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_shared_memory::{Error, Residence, SharedMemory};

const MIB: usize = 1 << 20;

fn two(place: &SharedFolder, group: &str, bytes: usize) -> [Carrier; 2] {
    carriers(&place.root(), group, 2, bytes).try_into().unwrap_or_else(|_| panic!("two members"))
}

#[test]
fn block_of_any_length_arrives_unchanged() {
    let place = SharedFolder::new();
    let [mut one, mut two] = two(&place, "lengths", 3 * MIB);
    let content: Vec<u8> = (0..3 * MIB).map(|index| (index % 251) as u8).collect();
    one.memory.write(0, &content).expect("inside");
    for (offset, length) in
        [(0, 3 * MIB), (1, 0), (3 * MIB, 0), (17, 1), (63, 262_144), (5, 262_145), (9, 2 * MIB)]
    {
        two.memory.write(0, &vec![0xee; 3 * MIB]).expect("inside");
        let into = (3 * MIB - length) / 2;
        two.receive(way(3, 0), into, length, 1).expect("posted");
        one.send(way(3, 1), offset, length, 2).expect("posted");
        assert_eq!(two.next_block(), received(way(3, 0), 1, length));
        assert_eq!(one.next_block(), sent(way(3, 1), 2));
        assert_eq!(two.bytes(into, length), &content[offset..offset + length]);
        assert!(two.bytes(0, into).iter().all(|byte| *byte == 0xee), "nothing before it");
        assert!(two.bytes(into + length, 3 * MIB - into - length).iter().all(|byte| *byte == 0xee));
    }
    drop((one, two));
    place.assert_empty();
}

#[test]
fn channels_take_turns_copying_block_pieces() {
    let place = SharedFolder::new();
    let [mut one, mut two] = two(&place, "fair", 17 * MIB);
    two.receive(way(0, 0), 0, 16 * MIB, 0).expect("posted");
    two.receive(way(1, 0), 16 * MIB, MIB, 1).expect("posted");
    one.send(way(0, 1), 0, 16 * MIB, 0).expect("posted");
    assert_eq!(two.fabric.poll_block(), None, "the long one has begun");
    one.send(way(1, 1), 16 * MIB, MIB, 1).expect("posted");
    assert_eq!(two.next_block(), received(way(1, 0), 1, MIB));
    assert_eq!(one.next_block(), sent(way(1, 1), 1));
    assert!(!two.fabric.arm(), "nobody sleeps with a copy half done");
    assert_eq!(two.next_block(), received(way(0, 0), 0, 16 * MIB));
}

#[test]
fn post_to_full_lane_is_refused_until_drained() {
    let place = SharedFolder::new();
    let [mut one, mut two] = two(&place, "full", 4096);
    let mut posted = 0_u64;
    // The peer does not poll, so it takes nothing.
    while posted < 1000 {
        match one.send(way((posted / 16) as u16, 1), 0, 8, posted) {
            Ok(()) => posted += 1,
            Err(kind) => {
                assert_eq!(kind, ErrorKind::QueueFull);
                break;
            }
        }
    }
    assert!((1..1000).contains(&posted), "{posted}");
    for number in 0..posted {
        two.receive(way((number / 16) as u16, 0), 0, 8, number).expect("posted");
    }
    let tokens = |carrier: &mut Carrier| -> Vec<u64> {
        (0..posted)
            .map(|_| match carrier.next_block() {
                BlockEvent::Sent { token, .. } | BlockEvent::Received { token, .. } => token.0,
            })
            .collect()
    };
    let (mut came, mut went) = (tokens(&mut two), tokens(&mut one));
    came.sort_unstable();
    went.sort_unstable();
    assert_eq!(came, (0..posted).collect::<Vec<_>>());
    assert_eq!(went, came);
    assert_eq!(one.send(way(0, 1), 0, 8, 1), Ok(()));
}

#[test]
fn reused_region_number_never_shows_old_memory() {
    let place = SharedFolder::new();
    let [mut one, mut two] = two(&place, "memories", 4096);
    for round in 1..40_u8 {
        let bytes = 4096 * usize::from(round);
        let mut memory = block_memory(&one.fabric, bytes).expect("memory");
        assert_eq!(memory.region(), Region(2), "the lowest that is free");
        memory.write(bytes - 100, &[round; 100]).expect("inside");
        let source = Area { region: memory.region(), offset: bytes - 100 };
        two.receive(way(0, 0), 0, 100, 1).expect("posted");
        one.fabric.send(way(0, 1), source, 100, 77, Token(2)).expect("posted");
        // The owner drops the memory before its peer has mapped it.
        drop(memory);
        assert_eq!(two.next_block(), received(way(0, 0), 1, 100));
        assert_eq!(one.next_block(), sent(way(0, 1), 2));
        assert_eq!(two.bytes(0, 100), vec![round; 100]);
    }
}

#[test]
fn number_and_size_of_block_memories_are_bounded() {
    let place = SharedFolder::new();
    let [one, _two] = two(&place, "many", 4096);
    let store = one.fabric.block_store();
    let memory = |bytes| store.memory(bytes, BlockUse::Both);
    let mut others: Vec<_> = (1..REGIONS_MAX).map(|_| memory(100).expect("memory")).collect();
    assert!(matches!(memory(100), Err(Error::TooManyRegions(_))));
    let region = others.remove(5).region();
    let before = place.contents().len();
    for bytes in [1 << 50, usize::MAX] {
        assert!(matches!(memory(bytes), Err(Error::NoMemory { .. })), "{bytes}");
    }
    assert_eq!(place.contents().len(), before, "nothing is left of what did not fit");
    assert_eq!(memory(100).expect("memory").region(), region);
}

#[test]
fn sender_may_change_memory_after_close() {
    let place = SharedFolder::new();
    for what in ["closed", "cut", "retired"] {
        let [mut one, mut two] = two(&place, what, 8 * MIB);
        two.receive(way(5, 0), 0, 8 * MIB, 1).expect("posted");
        one.send(way(5, 1), 0, 8 * MIB, 2).expect("posted");
        for _ in 0..31 {
            assert_eq!(two.fabric.poll_block(), None, "of 32 pieces");
        }
        match what {
            "closed" => one.fabric.close(VIEW, Channel(5)),
            "cut" => one.fabric.cut(VIEW, Rank(1)),
            _ => assert!(one.fabric.retire(VIEW)),
        }
        one.memory.write(0, &vec![9; 8 * MIB]).expect("inside");
        for _ in 0..100 {
            assert_eq!(two.fabric.poll_block(), None, "{what}");
            assert_eq!(one.fabric.poll_block(), None, "{what}");
        }
        while two.fabric.poll().is_some() {}
        assert!(two.fabric.arm(), "nothing is half done");
        two.fabric.disarm();
        if what == "closed" {
            two.receive(way(6, 0), 0, 8, 3).expect("posted");
            one.send(way(6, 1), 0, 8, 4).expect("posted");
            assert_eq!(two.next_block(), received(way(6, 0), 3, 8));
            assert_eq!(one.send(way(5, 1), 0, 8, 4), Err(ErrorKind::OutOfRange));
        }
    }
}

#[test]
fn closing_receiver_frees_the_senders_memory() {
    let place = SharedFolder::new();
    let [mut one, mut two] = two(&place, "given-up", 8 * MIB);
    two.receive(way(5, 0), 0, 8 * MIB, 1).expect("posted");
    one.send(way(5, 1), 0, 8 * MIB, 2).expect("posted");
    assert_eq!(two.fabric.poll_block(), None);
    two.fabric.close(VIEW, Channel(5));
    assert_eq!(one.next_block(), sent(way(5, 1), 2));
    for _ in 0..100 {
        assert_eq!(two.fabric.poll_block(), None);
    }
}

/// Numbers in a member's lane that no correct member writes. The memory with serial number 1 is the
/// member's own, of 4096 bytes.
fn lies() -> Vec<(&'static str, Vec<(usize, u64)>)> {
    let offer = |memory: u64, offset: u64, length: u64, about: u64| {
        vec![
            (ENTRY, memory),
            (ENTRY + 8, offset),
            (ENTRY + 16, length),
            (ENTRY + 24, about),
            (POSTED, 1),
        ]
    };
    vec![
        ("memory that there is not", offer(2, 0, 8, 0)),
        ("memory that is a pipe", offer(900, 0, 8, 0)),
        ("memory that is a folder", offer(901, 0, 8, 0)),
        ("memory of another member", offer(902, 0, 8, 0)),
        ("memory without a header", offer(903, 0, 8, 0)),
        ("memory that is shorter than a header", offer(904, 0, 8, 0)),
        ("memory under another number", offer(905, 0, 8, 0)),
        ("beyond the memory's end", offer(1, 4096, 1, 0)),
        ("across the memory's end", offer(1, 4090, 8, 0)),
        ("an offset without end", offer(1, u64::MAX - 3, 8, 0)),
        ("longer than the receive", offer(1, 0, 9, 0)),
        ("a length without end", offer(1, 8, u64::MAX, 0)),
        ("a channel without a receive", offer(1, 0, 8, 1)),
        ("a channel that there is not", offer(1, 0, 8, 1024)),
        ("the last number of a channel", offer(1, 0, 8, 0xffff)),
        ("more entries than there can be", vec![(POSTED, 129)]),
        ("entries without end", vec![(POSTED, u64::MAX)]),
        ("entries taken that nobody posted", vec![(TAKEN, 1)]),
        ("answers that nobody asked for", vec![(SETTLED, 1)]),
        ("an answer that is none", vec![(ANSWER, 512), (SETTLED, 1)]),
        ("answers without end", vec![(SETTLED, u64::MAX)]),
    ]
}

#[test]
fn only_misbehaving_member_is_lost() {
    for (what, numbers) in lies() {
        let place = SharedFolder::new();
        let mut members = carriers(&place.root(), "lies", 3, 4096);
        let [liar, honest, third] = members.as_mut_slice() else { panic!("three members") };
        liar.memory.write(0, &[5; 4096]).expect("inside");
        honest.receive(way(0, 0), 0, 8, 1).expect("posted");
        send_garbage(&place.root().path().join("lies"), liar);
        // Memory is sent before the lie that refers to it, as a correct member does. The peer also
        // has one valid memory.
        assert_eq!(honest.events(), [], "{what}");
        lie(liar, 1, &numbers);
        let lost = Event::PeerLost { view: VIEW, peer: Rank(0), cause: LossCause::Misbehaved };
        assert_eq!(honest.events(), [lost], "{what}");
        assert_eq!(honest.bytes(0, 4096), vec![0; 4096], "{what}");
        assert_eq!(honest.events(), [], "{what}: it is told once");
        assert_eq!(honest.receive(way(0, 0), 0, 8, 1), Err(ErrorKind::PeerLost), "{what}");
        honest.receive(way(0, 2), 0, 8, 3).expect("posted");
        third.send(way(0, 1), 0, 8, 4).expect("posted");
        assert_eq!(honest.next_block(), received(way(0, 2), 3, 8), "{what}");
        assert_eq!(third.next_block(), sent(way(0, 1), 4), "{what}");
    }
}

/// Sends descriptors of things that are not the liar's block memory, and of its only block memory,
/// of 4096 bytes.
fn send_garbage(group: &std::path::Path, liar: &Carrier) {
    let incarnation = liar.mappings.residence().incarnation();
    let (pipe, _end) = std::io::pipe().expect("a pipe");
    let folder = std::fs::File::open(group).expect("a folder");
    let bytes = HEADER + 4096;
    for (number, file) in [
        (900, pipe.into()),
        (901, folder.into()),
        (902, memory(&signed(11, incarnation, 902, bytes), SEALS)),
        (903, memory(&[0xff; 9000], SEALS)),
        (904, memory(&[0; 10], SEALS)),
        (905, memory(&signed(10, incarnation, 1, bytes), SEALS)),
        (1, memory(&signed(10, incarnation, 1, bytes), SEALS)),
    ] {
        let said = Said { node: 10, incarnation, kind: 2, view: VIEW.0, number };
        send(group, 11, said, &[&file]);
    }
}

#[test]
fn block_without_receive_is_reported_to_both() {
    let place = SharedFolder::new();
    let [mut one, mut two] = two(&place, "unawaited", 4096);
    one.send(way(0, 1), 0, 8, 1).expect("posted");
    let lost = |peer, cause| Event::PeerLost { view: VIEW, peer: Rank(peer), cause };
    assert_eq!(two.events(), [lost(0, LossCause::Misbehaved)]);
    assert_eq!(one.events(), [lost(1, LossCause::Denied)]);
}

#[test]
fn groups_with_different_names_never_share_blocks() {
    let place = SharedFolder::new();
    let (mut red, mut blue) = (two(&place, "red", 4096), two(&place, "blue", 4096));
    for (group, value) in [(&mut red, 1_u8), (&mut blue, 2)] {
        group[0].memory.write(0, &[value; 64]).expect("inside");
        group[1].receive(way(0, 0), 0, 64, 1).expect("posted");
        group[0].send(way(0, 1), 0, 64, 2).expect("posted");
    }
    for (group, value) in [(&mut red, 1_u8), (&mut blue, 2)] {
        assert_eq!(group[1].next_block(), received(way(0, 0), 1, 64));
        assert_eq!(group[1].bytes(0, 64), vec![value; 64]);
    }
    drop(red);
    blue[1].receive(way(0, 0), 0, 64, 1).expect("posted");
    blue[0].send(way(0, 1), 0, 64, 2).expect("posted");
    assert_eq!(blue[1].next_block(), received(way(0, 0), 1, 64));
}

#[test]
fn blocks_are_refused_without_block_queues() {
    let place = SharedFolder::new();
    let mut members = crate::support::join_all(&place.root(), "plain", &crate::support::small(2));
    let fabric = &mut members[0].fabric;
    let memory = block_memory(fabric, 64).expect("memory");
    let area = Area { region: memory.region(), offset: 0 };
    assert_eq!(fabric.send(way(0, 1), area, 8, 0, Token(0)), Err(ErrorKind::OutOfRange));
    assert_eq!(fabric.post_receive(way(0, 1), area, 8, Token(0)), Err(ErrorKind::OutOfRange));
    fabric.close(VIEW, Channel(0));
    assert_eq!(fabric.poll_block(), None);
}

/// Membership changes: cells and block queues in successive views, with the same block memory.
#[test]
fn each_view_has_separate_queues() {
    let place = SharedFolder::new();
    let resident = |node: u32| {
        let residence = Residence::claim(
            &place.root(),
            &name("views"),
            NodeId(node),
            3,
            u64::from(node) + 100,
            LONG,
            &NEVER,
        );
        Arc::new(residence.expect("a place"))
    };
    let residences = [resident(10), resident(11)];
    let mut fabrics = residences.each_ref().map(SharedMemory::for_residence);
    let memories = fabrics.each_ref().map(|fabric| block_memory(fabric, 4096).expect("memory"));
    for view in (1..4).map(tramontane_core::ids::ViewId) {
        let mut mappings = Vec::new();
        for (own, fabric) in (0..).map(Rank).zip(&mut fabrics) {
            let rows = fabric.rows(&plan(view, own, 2)).expect("rows");
            fabric.open(view, &rows.memory()).expect("it opens");
            mappings.push(rows);
        }
        let mut polls = 0_u32;
        while !(fabrics[0].ready(view, Rank(1)) && fabrics[1].ready(view, Rank(0))) {
            for fabric in &mut fabrics {
                let _ = fabric.poll();
            }
            polls += 1;
            assert!(polls < 10_000_000, "they do not find each other");
        }
        let [one, two] = &mut fabrics;
        let [from, to] =
            memories.each_ref().map(|memory| Area { region: memory.region(), offset: 0 });
        let on =
            |peer| tramontane_core::fabric::Way { view, channel: Channel(1), peer: Rank(peer) };
        for turn in 0..300 {
            two.post_receive(on(0), to, 8, Token(turn)).expect("posted");
            one.send(on(1), from, 8, 77, Token(turn)).expect("posted");
            assert_eq!(two.poll_block(), Some(received(on(0), turn, 8)));
            assert_eq!(one.poll_block(), Some(sent(on(1), turn)));
        }
        one.close(view, Channel(1));
        assert_eq!(
            one.send(on(1), from, 8, 77, Token(0)),
            Err(ErrorKind::OutOfRange),
            "in this view"
        );
        assert!(one.retire(view) && two.retire(view));
    }
    drop((fabrics, memories, residences));
    place.assert_empty();
}

#[test]
fn block_offer_and_answer_wake_sleepers() {
    const TURNS: u64 = 2000;
    let place = SharedFolder::new();
    let members = two(&place, "sleepers", 4096);
    std::thread::scope(|scope| {
        for (own, mut member) in (0_u16..).zip(members) {
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let peer = 1 - own;
                    // Both members sleep until the other's block has arrived and their own has been
                    // taken.
                    member.receive(way(0, peer), 64, 8, turn).expect("posted");
                    // The other member has posted its receive once its cell shows this turn.
                    member.mappings.row().cell(0).expect("a cell").publish(turn + 1);
                    while member.mappings.rows()[usize::from(peer)].cell(0).expect("a cell").load()
                        <= turn
                    {
                        std::thread::yield_now();
                    }
                    member.send(way(0, peer), 0, 8, turn).expect("posted");
                    let mut left = 2;
                    while left > 0 {
                        while member.fabric.poll().is_some() {}
                        if member.fabric.poll_block().is_some() {
                            left -= 1;
                        } else if member.fabric.arm() {
                            if member.fabric.poll_block().is_some() {
                                left -= 1;
                            } else {
                                let started = std::time::Instant::now();
                                member.fabric.sleep(LONG);
                                assert!(
                                    started.elapsed() < Duration::from_secs(20),
                                    "a wake-up was lost"
                                );
                            }
                            member.fabric.disarm();
                        }
                    }
                }
                // The other member may still need an answer from this one.
                for _ in 0..1000 {
                    member.fabric.carry_blocks();
                    std::thread::yield_now();
                }
            });
        }
    });
}

/// A sender closes a channel while its peer is copying in another thread, and overwrites its memory
/// at once. In every round, the reported blocks are whole.
#[test]
fn reported_blocks_are_complete_despite_concurrent_close() {
    const CHANNELS: u16 = 1000;
    // The block is a single piece, so nothing of it is visible before its end.
    const BYTES: usize = 200 << 10;
    const PLACES: usize = 8;
    let place = SharedFolder::new();
    let [mut one, mut two] = two(&place, "race", PLACES * BYTES);
    for channel in 0..CHANNELS {
        let at = usize::from(channel) % PLACES * BYTES;
        two.receive(way(channel, 0), at, BYTES, 0).expect("posted");
    }
    let is_over = AtomicBool::new(false);
    let (came, given_up) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut came = 0_u32;
            while !is_over.load(Ordering::Acquire) {
                let Some(event) = two.fabric.poll_block() else { continue };
                let BlockEvent::Received { way, length: BYTES, .. } = event else {
                    panic!("{event:?}")
                };
                let bytes = two.bytes(usize::from(way.channel.0) % PLACES * BYTES, BYTES);
                let value = way.channel.0 as u8;
                let other = bytes.iter().position(|byte| *byte != value);
                assert_eq!(other, None, "a byte of another round in channel {}", way.channel.0);
                came += 1;
            }
            assert!(two.fabric.poll().is_none_or(|event| event == Event::Woken));
            came
        });
        let mut given_up = 0;
        for channel in 0..CHANNELS {
            // The bytes that are copied last are overwritten first, so that copying and overwriting
            // meet.
            let content = vec![channel as u8; BYTES];
            one.memory.write(BYTES - 4096, &content[..4096]).expect("inside");
            one.memory.write(0, &content).expect("inside");
            one.send(way(channel, 1), 0, BYTES, 0).expect("posted");
            if channel.is_multiple_of(10) {
                one.next_block();
            } else {
                // The delay is about as long as a copy, or shorter, or longer.
                (0..u32::from(channel) % 100 * 50).for_each(|_| std::hint::spin_loop());
                given_up += u32::from(one.fabric.poll_block().is_none());
            }
            one.fabric.close(VIEW, Channel(channel));
        }
        is_over.store(true, Ordering::Release);
        (receiver.join().expect("no panic"), given_up)
    });
    assert!(came > 0 && given_up > 0, "both happen: {came} came, {given_up} were given up");
}
