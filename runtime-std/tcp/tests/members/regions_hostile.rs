//! A peer that sends region frames that no member sends is lost, but no other peer is, and none of
//! its bytes are stored. A peer that merely uses a right that it does not have is not lost.

use std::io::{Read as _, Write as _};

use crate::support::{
    DIGEST, Hand, LOG, LOG_BYTES, TcpMember, VIEW, guard, header, key, open_frame, open_frame_of,
    settle, with_hand, write_frame,
};
use tramontane_core::fabric::{Event, Fabric, LossCause, Permissions as _, ViewRows as _};
use tramontane_core::ids::{Rank, ViewId};

const BAD: Rank = Rank(1);

const LIST: u8 = 7;
const TAKEN: u8 = 8;
const RIGHT: u8 = 9;
const REGION: u8 = 10;
const CLOSE: u8 = 11;
const CLOSED: u8 = 12;
const READ: u8 = 13;
const ANSWER: u8 = 14;

/// The first right that a member grants.
const FIRST: u64 = 1;

fn list(region: u16, writes: u32, right: u64) -> Vec<u8> {
    header(LIST, region, writes, VIEW.0, right)
}

fn write(region: u16, offset: u64, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("short");
    [header(2, region, length, VIEW.0, offset), content.to_vec()].concat()
}

/// Returns a member whose log the hand may write to, under the first right.
fn granting(keyed: bool) -> (Vec<TcpMember>, Hand) {
    let (mut members, mut hand) = with_hand(if keyed { key() } else { None });
    hand.send(&[header(REGION, LOG.0, 0, 0, 4096), open_frame()].concat());
    settle(&mut members);
    members[0].fabric.grant(VIEW, BAD, LOG).expect("it is ready");
    members[0].events();
    (members, hand)
}

fn assert_others_go_on(members: &mut [TcpMember]) {
    members[1].rows.row().cell(64).expect("a cell").publish(99);
    members[1].fabric.post(VIEW, Rank(0), &[guard(64)], None).expect("the way is open");
    settle(members);
    assert_eq!(members[0].cell(Rank(2), 64), 99);
}

#[test]
fn invalid_region_frames_lose_the_peer() {
    let end = LOG_BYTES as u64;
    let seven = &[7; 8];
    let reads = header(READ, LOG.0, 8, VIEW.0, 0).repeat(17);
    let many = (2..40).flat_map(|region| header(REGION, region, 0, 0, 64)).collect();
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("a write to a region without a list", write(LOG.0, 0, seven)),
        ("a list to a region that is not there", [list(9, 1, 1), write(9, 0, seven)].concat()),
        ("a list to a row with a right", [list(0, 1, 1), write(0, 0, seven)].concat()),
        ("a list to a region without one", [list(LOG.0, 1, 0), write(LOG.0, 0, seven)].concat()),
        ("a list of more writes than may be", list(LOG.0, 17, FIRST)),
        (
            "a list in a view that is not open",
            [header(LIST, LOG.0, 1, 9, FIRST), write(LOG.0, 0, seven)].concat(),
        ),
        ("a write to a row in it", [list(LOG.0, 1, FIRST), write(0, 0, seven)].concat()),
        ("a write to a region in a row's", [list(0, 1, 0), write(LOG.0, 0, seven)].concat()),
        ("a list that does not go on", [list(LOG.0, 1, FIRST), open_frame()].concat()),
        ("a list in a list", [list(LOG.0, 1, FIRST), list(LOG.0, 1, FIRST)].concat()),
        ("a write past the end", [list(LOG.0, 1, FIRST), write(LOG.0, end - 7, seven)].concat()),
        (
            "a write past all ends",
            [list(LOG.0, 1, FIRST), write(LOG.0, u64::MAX - 3, seven)].concat(),
        ),
        (
            "the same with a right that is not there",
            [list(LOG.0, 1, 99), write(LOG.0, end - 7, seven)].concat(),
        ),
        ("lists that were not posted are taken", header(TAKEN, 0, 0, 0, 1)),
        ("a right to a region that nobody told of", header(RIGHT, 9, 0, VIEW.0, 5)),
        ("a right in a view that is not open", header(RIGHT, LOG.0, 0, 9, 5)),
        ("a right that is given twice", header(RIGHT, LOG.0, 0, VIEW.0, 5).repeat(2)),
        ("a region twice", header(REGION, LOG.0, 0, 0, 4096)),
        ("the region of rows", header(REGION, 0, 0, 0, 4096)),
        ("more regions than may be", many),
        ("the end of a view that it did not open", header(CLOSE, 0, 0, 9, 0)),
        ("an end twice", header(CLOSE, 0, 0, VIEW.0, 0).repeat(2)),
        ("a write after the end", [header(CLOSE, 0, 0, VIEW.0, 0), write(0, 0, seven)].concat()),
        ("an answer to an end that was not told", header(CLOSED, 0, 0, VIEW.0, 0)),
        ("a read of nothing", header(READ, LOG.0, 0, VIEW.0, 0)),
        ("a read past the end", header(READ, LOG.0, 8, VIEW.0, end - 7)),
        ("a read past all ends", header(READ, LOG.0, 8, VIEW.0, u64::MAX)),
        ("a read of a region that is not there", header(READ, 9, 8, VIEW.0, 0)),
        ("a read of rows", header(READ, 0, 8, VIEW.0, 0)),
        ("a read in a view that is not open", header(READ, LOG.0, 8, 9, 0)),
        ("more reads than may wait", reads),
        (
            "an answer that nobody asked for",
            [header(ANSWER, LOG.0, 8, VIEW.0, 8), seven.to_vec()].concat(),
        ),
    ];
    for (turn, (what, bytes)) in bad.iter().enumerate() {
        // With a key, the stream is the same, so testing every third turn is enough.
        let keys = if turn % 3 == 0 { &[false, true][..] } else { &[false] };
        for keyed in keys.iter().copied() {
            let (mut members, mut hand) = granting(keyed);
            hand.send(bytes);
            let loss = members[0].loss();
            let cause = LossCause::Misbehaved;
            assert_eq!(loss, Event::PeerLost { view: VIEW, peer: BAD, cause }, "{what}");
            assert_eq!(members[0].logged(0, LOG_BYTES), [0; LOG_BYTES], "{what}");
            assert!(members[0].copy(BAD).iter().all(|byte| *byte == 0), "{what}");
            assert!(!members[0].fabric.may_write(VIEW, BAD, LOG), "{what}");
            assert_others_go_on(&mut members);
        }
    }
}

/// Returns the latest number of finished lists that the hand has received.
fn taken(hand: &mut Hand) -> u64 {
    hand.connection.stream.set_nonblocking(true).expect("a socket");
    let mut bytes = vec![0; 1 << 16];
    let mut count = 0;
    while let Ok(more) = hand.connection.stream.read(&mut bytes[count..]) {
        count += more;
    }
    hand.connection.stream.set_nonblocking(false).expect("a socket");
    let mut rest = &bytes[..count];
    let mut taken = 0;
    while let Some((frame, after)) = rest.split_at_checked(24) {
        let last = frame[16..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        if frame[0] == TAKEN {
            taken = last;
        }
        rest = &after[if frame[0] == 1 { 8 } else { 0 }..];
    }
    taken
}

#[test]
fn write_list_without_permission_is_ignored() {
    let (mut members, mut hand) = granting(false);
    let by = |right, value| [list(LOG.0, 1, right), write(LOG.0, 64, &[value; 64])].concat();
    for right in [2, 99, u64::MAX] {
        hand.send(&by(right, 7));
    }
    settle(&mut members);
    assert_eq!((members[0].logged(64, 64), taken(&mut hand)), (vec![0; 64], 3));
    hand.send(&by(FIRST, 8));
    settle(&mut members);
    assert_eq!((members[0].logged(64, 64), taken(&mut hand)), (vec![8; 64], 4));
    members[0].fabric.revoke(VIEW, BAD, LOG).expect("it is there");
    members[0].fabric.grant(VIEW, BAD, LOG).expect("it is there");
    hand.send(&by(FIRST, 9));
    settle(&mut members);
    assert_eq!(members[0].logged(64, 64), [8; 64], "a right that was taken back");
    hand.send(&[by(FIRST + 1, 10), write_frame(0, &[7; 8])].concat());
    settle(&mut members);
    assert_eq!((members[0].logged(64, 64), taken(&mut hand)), (vec![10; 64], 6));
    assert_eq!(members[0].copy(BAD)[..8], [7; 8], "rows go on");
    assert_eq!(members[0].events(), []);
}

/// A right is revoked at each possible point of a list. Earlier writes are stored, and later ones
/// are not.
#[test]
fn revocation_during_list_stops_later_writes() {
    for keyed in [false, true] {
        for length in [24, 30, 24 + 24 + 8, 24 + 24 + 20_000, 24 + 24 + 40_000 + 24 + 4] {
            let (mut members, mut hand) = granting(keyed);
            let (first, second) = (vec![7; 40_000], [8; 64]);
            let bytes =
                [list(LOG.0, 2, FIRST), write(LOG.0, 0, &first), write(LOG.0, 50_000, &second)];
            let bytes = bytes.concat();
            hand.send(&bytes[..length]);
            settle(&mut members);
            members[0].fabric.revoke(VIEW, BAD, LOG).expect("it is there");
            let landed = members[0].logged(0, LOG_BYTES);
            let whole = length.saturating_sub(48).min(40_000) / 8 * 8;
            assert_eq!(landed[..whole], first[..whole]);
            assert!(landed[whole..].iter().all(|byte| *byte == 0), "{length}");
            hand.send(&bytes[length..]);
            // The stream is intact, so the list under the next right is stored.
            members[0].fabric.grant(VIEW, BAD, LOG).expect("it is there");
            settle(&mut members);
            assert_eq!(members[0].logged(0, LOG_BYTES), landed, "{length}");
            hand.send(&[list(LOG.0, 1, FIRST + 1), write(LOG.0, 60_000, &second)].concat());
            settle(&mut members);
            assert_eq!(members[0].logged(60_000, 64), second, "{length}");
            assert_eq!(members[0].events(), []);
        }
    }
}

#[test]
fn list_sent_byte_by_byte_stores_whole_cells() {
    let (mut members, mut hand) = granting(false);
    let content: Vec<u8> = (1..=61).collect();
    let bytes = [list(LOG.0, 1, FIRST), write(LOG.0, 13, &content)].concat();
    let whole: Vec<u8> = [vec![0; 13], content, vec![0; 6]].concat();
    for byte in bytes {
        hand.send(&[byte]);
        std::thread::sleep(std::time::Duration::from_micros(50));
        members[0].fabric.carry();
        for (cell, expected) in members[0].logged(0, 80).chunks(8).zip(whole.chunks(8)) {
            let is_none = cell.iter().all(|byte| *byte == 0);
            assert!(is_none || cell == expected, "{cell:?} is neither nothing nor {expected:?}");
        }
    }
    settle(&mut members);
    assert_eq!(members[0].logged(0, 80), whole);
}

/// A process that ends more views than it reads answers for is lost before it uses up memory.
#[test]
fn flood_of_view_ends_loses_the_peer() {
    let (mut members, mut hand) = granting(false);
    let flooding = std::thread::spawn(move || {
        // The peer's own writes fail after it has been lost.
        for view in (9..).map(ViewId) {
            let both = [open_frame_of(view, DIGEST), header(CLOSE, 0, 0, view.0, 0)].concat();
            if hand.connection.stream.write_all(&both).is_err() {
                break;
            }
        }
    });
    let loss = members[0].loss();
    assert!(matches!(loss, Event::PeerLost { peer: BAD, .. }), "{loss:?}");
    flooding.join().expect("no panic");
    assert_others_go_on(&mut members);
}
