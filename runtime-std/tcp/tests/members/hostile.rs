//! A peer that sends what no member sends is lost, but no other peer is. None of its bytes are
//! stored, and nothing panics.

use std::io::Write as _;
use std::time::Duration;

use crate::support::{
    DIGEST, Hand, ROW_BYTES, TcpMember, VIEW, guard, header, key, open_frame, open_frame_of,
    open_frame_with, settle, with_hand, write_frame,
};
use tramontane_core::fabric::{ErrorKind, Event, Fabric, LossCause, ViewRows as _};
use tramontane_core::ids::{Rank, ViewId};

const BAD: Rank = Rank(1);

/// Asserts that the other two continue.
fn assert_others_go_on(members: &mut [TcpMember]) {
    members[1].rows.row().cell(64).expect("a cell").publish(99);
    members[1].fabric.post(VIEW, Rank(0), &[guard(64)], None).expect("the way is open");
    settle(members);
    assert_eq!(members[0].cell(Rank(2), 64), 99);
}

/// Sends these bytes, and expects the peer to be lost and the copy to be unchanged.
fn assert_lost(what: &str, keyed: bool, bytes: &[u8]) {
    let (mut members, mut hand) = with_hand(if keyed { key() } else { None });
    hand.send(bytes);
    let loss = members[0].loss();
    assert_eq!(
        loss,
        Event::PeerLost { view: VIEW, peer: BAD, cause: LossCause::Misbehaved },
        "{what}"
    );
    assert!(members[0].copy(BAD).iter().all(|byte| *byte == 0), "{what}: something landed");
    let refused = members[0].fabric.post(VIEW, BAD, &[guard(0)], None);
    assert_eq!(refused, Err(ErrorKind::PeerLost), "{what}");
    assert_others_go_on(&mut members);
}

/// Returns pseudo-random numbers, which are the same in each run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn malformed_data_disconnects_its_sender() {
    for keyed in [false, true] {
        for seed in 1..=20 {
            assert_lost("noise", keyed, &noise(seed, 4096));
            assert_lost(
                "noise behind a good frame",
                keyed,
                &[open_frame(), noise(seed, 300)].concat(),
            );
        }
        assert_lost("zeros", keyed, &[0; 64]);
        assert_lost("a web page", keyed, b"GET / HTTP/1.1\r\nHost: tramontane\r\n\r\n");
    }
}

#[test]
fn invalid_frames_are_refused_before_storing() {
    let row = ROW_BYTES as u64;
    let write = |region, length, view, offset| {
        let body = vec![7; 64];
        [open_frame(), header(2, region, length, view, offset), body].concat()
    };
    let mut padded = open_frame();
    padded[1] = 1;
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("a write past the end of the row", write(0, 8, VIEW.0, row - 7)),
        ("a write behind the row", write(0, 8, VIEW.0, row)),
        ("a write at the end of the address space", write(0, 8, VIEW.0, u64::MAX - 3)),
        ("a write as long as can be said", write(0, u32::MAX, VIEW.0, 0)),
        ("a write longer than the row", write(0, ROW_BYTES as u32 + 1, VIEW.0, 0)),
        ("a write to another region", write(7, 8, VIEW.0, 0)),
        ("a write in a view that is not open", write(0, 8, 2, 0)),
        ("a write in no view", write(0, 8, 0, 0)),
        ("a write in the last view that has a number", write(0, 8, u64::MAX, 0)),
        ("a write before the view was opened", write_frame(0, &[7; 64])),
        (
            "a view opened anew after it was used",
            [open_frame(), write_frame(0, &[0; 64]), open_frame()].concat(),
        ),
        ("a row of another length", open_frame_with(VIEW, DIGEST, row + 64)),
        ("an open that is too short", header(1, 0, 0, VIEW.0, row)),
        (
            "more views ahead than there can be",
            (2..515).flat_map(|view| open_frame_of(ViewId(view), DIGEST)).collect(),
        ),
        ("a byte that means nothing", padded),
        ("a wake that has content", [open_frame(), header(3, 0, 8, 0, 0)].concat()),
        ("a frame of no kind", [open_frame(), header(9, 0, 0, VIEW.0, 0)].concat()),
    ];
    for keyed in [false, true] {
        for (what, bytes) in &bad {
            assert_lost(what, keyed, bytes);
        }
    }
}

#[test]
fn tampered_encrypted_records_are_detected() {
    type Spoil = fn(&mut Hand) -> Vec<u8>;
    let spoils: [(&str, Spoil); 5] = [
        ("changed", |hand| {
            let mut record = hand.seal(&write_frame(0, &[7; 64]));
            let last = record.len() - 1;
            record[last] ^= 1;
            record
        }),
        ("repeated", |hand| {
            let record = hand.seal(&header(3, 0, 0, 0, 0));
            [record.clone(), record].concat()
        }),
        ("left out", |hand| {
            hand.seal(&header(3, 0, 0, 0, 0));
            hand.seal(&write_frame(0, &[7; 64]))
        }),
        ("in clear", |_| write_frame(0, &[7; 64])),
        ("empty", |_| vec![0, 0]),
    ];
    for (what, spoil) in spoils {
        let (mut members, mut hand) = with_hand(key());
        hand.send(&open_frame());
        settle(&mut members);
        let bytes = spoil(&mut hand);
        hand.connection.stream.write_all(&bytes).expect("it goes");
        // A wrong length announces bytes that never arrive, but the end of the stream does arrive.
        let _ = hand.connection.stream.shutdown(std::net::Shutdown::Write);
        let loss = members[0].loss();
        assert!(matches!(loss, Event::PeerLost { peer: BAD, .. }), "{what}: {loss:?}");
        assert!(members[0].copy(BAD).iter().all(|byte| *byte == 0), "{what}: something landed");
        assert_others_go_on(&mut members);
    }
}

#[test]
fn slow_write_never_exposes_partial_cell() {
    for keyed in [false, true] {
        let (mut members, mut hand) = with_hand(if keyed { key() } else { None });
        // This range crosses cell boundaries at both ends.
        let content: Vec<u8> = (1..=61).collect();
        let bytes = [open_frame(), write_frame(13, &content)].concat();
        for byte in bytes {
            hand.send(&[byte]);
            std::thread::sleep(Duration::from_micros(50));
            members[0].fabric.carry();
            let copy = members[0].copy(BAD);
            let whole: Vec<u8> = [vec![0; 13], content.clone(), vec![0; 6]].concat();
            for (cell, expected) in copy.chunks(8).zip(whole.chunks(8)) {
                let is_none = cell.iter().all(|byte| *byte == 0);
                assert!(
                    is_none || cell == expected,
                    "{cell:?} is neither nothing nor {expected:?}"
                );
            }
        }
        settle(&mut members);
        assert_eq!(members[0].copy(BAD)[13..13 + 61], content);
    }
}

/// Headers and cells begin in one record and end in another, and one read takes many records.
#[test]
fn frames_split_over_records_are_stored() {
    for length in [1, 5, 7, 23, 24, 25, 31, 33, 100, 4096] {
        let (mut members, mut hand) = with_hand(key());
        let content = noise(9, 3_001);
        let bytes = [open_frame(), write_frame(5, &content[..61]), write_frame(66, &content[61..])];
        bytes.concat().chunks(length).for_each(|part| hand.send(part));
        settle(&mut members);
        assert_eq!(members[0].copy(BAD)[5..5 + content.len()], content, "records of {length}");
    }
}

#[test]
fn fragmented_long_write_is_stored_completely() {
    for keyed in [false, true] {
        let (mut members, mut hand) = with_hand(if keyed { key() } else { None });
        hand.send(&open_frame());
        let content = noise(5, 50_001);
        let bytes = write_frame(77, &content);
        let mut rest = &bytes[..];
        for length in (1..).map(|step| (step * 7919) % 9001 + 1) {
            let (part, after) = rest.split_at(rest.len().min(length));
            hand.send(part);
            members[0].fabric.carry();
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        settle(&mut members);
        let copy = members[0].copy(BAD);
        assert!(copy[77..77 + content.len()] == content[..]);
        assert!(copy[..77].iter().chain(&copy[77 + content.len()..]).all(|byte| *byte == 0));
    }
}

#[test]
fn death_during_frame_never_leaves_torn_cells() {
    for keyed in [false, true] {
        for length in [10, 23, 24, 25, 40, 20_000] {
            let (mut members, mut hand) = with_hand(if keyed { key() } else { None });
            let content = vec![9; 40_000];
            let bytes = write_frame(0, &content);
            hand.send(&[open_frame(), bytes[..length].to_vec()].concat());
            settle(&mut members);
            drop(hand);
            let loss = members[0].loss();
            assert_eq!(loss, Event::PeerLost { view: VIEW, peer: BAD, cause: LossCause::Exited });
            let landed = length.saturating_sub(24) / 8 * 8;
            let copy = members[0].copy(BAD);
            assert!(copy[..landed].iter().all(|byte| *byte == 9), "{length}");
            assert!(copy[landed..].iter().all(|byte| *byte == 0), "{length}");
            assert_others_go_on(&mut members);
        }
    }
}
