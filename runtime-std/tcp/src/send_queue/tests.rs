use tramontane_core::fabric::{ViewRows as _, Write};

use crate::lent_content::CELL;
use crate::memory::rows_of;

use super::*;

const CELLS: usize = 128;

fn add(send_queue: &mut SendQueue, rows: &Rows, write: Write) {
    let (view, regions) = (ViewId(1), &OwnRegions::default());
    send_queue.add(&List { view, rows, regions, writes: &[write] }, false).expect("in the row");
}

/// Takes bytes as a socket does, `most` bytes at a time.
fn take_as_a_socket(send_queue: &mut SendQueue, most: usize) -> Vec<u8> {
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let (count, _) = send_queue.slices(&mut slices).expect("what waits is there");
    let all: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
    let taken = all[..most.min(all.len())].to_vec();
    send_queue.take(taken.len(), &mut |_| {});
    taken
}

fn publish_all(rows: &Rows, value: u8) {
    for cell in 0..CELLS {
        let cell = rows.row().cell(cell * CELL).expect("in the row");
        cell.publish(u64::from_ne_bytes([value; CELL]));
    }
}

/// Returns the content that arrives if cells grow after each part, and a socket takes `part` bytes
/// at a time.
fn arrives(part: usize, ended_after: Option<usize>) -> Vec<u8> {
    let rows = rows_of(1, &[CELLS * CELL, 64]);
    let mut send_queue = SendQueue::new(false);
    publish_all(&rows, 1);
    let write = Write::of_row(0, CELLS * CELL, Kind::Content);
    add(&mut send_queue, &rows, write);
    let mut arrived = Vec::new();
    let mut value = 1;
    while send_queue.is_pending() {
        arrived.extend(take_as_a_socket(&mut send_queue, part));
        value += 1;
        publish_all(&rows, value);
        if ended_after == Some(usize::from(value)) {
            send_queue.keep(&rows);
            publish_all(&rows, 0);
        }
    }
    arrived.split_off(HEADER)
}

#[test]
fn unaligned_content_arrives_unchanged() {
    let rows = rows_of(1, &[CELLS * CELL, 64]);
    publish_all(&rows, 7);
    for part in [1, 3, 8, 64, 4096] {
        let mut send_queue = SendQueue::new(false);
        let write = Write::of_row(CELL + 1, COPIED_MAX + 2, Kind::Content);
        add(&mut send_queue, &rows, write);
        let mut arrived = Vec::new();
        while send_queue.is_pending() {
            arrived.extend(take_as_a_socket(&mut send_queue, part));
        }
        assert_eq!(arrived.split_off(HEADER), [7; COPIED_MAX + 2], "in parts of {part}");
    }
}

#[test]
fn increasing_cells_never_arrive_torn() {
    for part in (5..40).chain([63, 99, 511, 513]) {
        for ended_after in [None, Some(3), Some(4)] {
            let content = arrives(part, ended_after);
            assert_eq!(content.len(), CELLS * CELL);
            for (place, cell) in content.chunks(CELL).enumerate() {
                let whole = cell.iter().all(|byte| *byte == cell[0] && *byte > 0);
                assert!(whole, "cell {place} in parts of {part}: {cell:?}");
            }
        }
    }
}

const HEARTBEAT: Write = Write::of_row(0, 24, Kind::Content);
const LONG_BYTES: usize = 500_000;
const LONG: Write = Write::of_row(64, LONG_BYTES, Kind::Content);

fn overtake(send_queue: &mut SendQueue, rows: &Rows, view: ViewId, write: Write) -> bool {
    let regions = &OwnRegions::default();
    send_queue.overtake(&List { view, rows, regions, writes: &[write] }).expect("in the row")
}

/// Stores each write of a stream into a row, and returns the row and the positions in the stream at
/// which heartbeats ended, with their values.
fn stored(mut stream: &[u8]) -> (Vec<u8>, Vec<(usize, u8)>) {
    let (mut row, mut heartbeats) = (vec![0; 64 + LONG_BYTES], Vec::new());
    let whole = stream.len();
    while !stream.is_empty() {
        let field = |from: usize| &stream[from..from + 8];
        let offset = u64::from_le_bytes(field(16).try_into().expect("eight")) as usize;
        let length = u32::from_le_bytes(stream[4..8].try_into().expect("four")) as usize;
        let content = &stream[HEADER..HEADER + length];
        row[offset..offset + length].copy_from_slice(content);
        stream = &stream[HEADER + length..];
        if offset == 0 {
            heartbeats.push((whole - stream.len(), content[0]));
        }
    }
    (row, heartbeats)
}

/// However a socket takes a long list, each heartbeat waits for at most one part of it, and the
/// list arrives whole.
#[test]
fn heartbeats_overtake_long_content() {
    let rows = rows_of(1, &[64 + LONG_BYTES, 64]);
    let publish = |from: usize, bytes: usize, value: u8| {
        for offset in (from..from + bytes).step_by(CELL) {
            rows.row().cell(offset).expect("in the row").publish(u64::from_ne_bytes([value; CELL]));
        }
    };
    publish(64, LONG_BYTES, 200);
    for part in [1_000, 7_001, 65_536, 131_072, 131_096, 200_000] {
        let mut send_queue = SendQueue::new(false);
        add(&mut send_queue, &rows, LONG);
        let (mut arrived, mut accepted) = (Vec::new(), Vec::new());
        for value in 1..=150 {
            arrived.extend(take_as_a_socket(&mut send_queue, part));
            publish(0, 24, value);
            if overtake(&mut send_queue, &rows, ViewId(1), HEARTBEAT) {
                accepted.push((arrived.len(), value));
            }
        }
        while send_queue.is_pending() {
            arrived.extend(take_as_a_socket(&mut send_queue, part));
        }
        let (row, heartbeats) = stored(&arrived);
        assert!(row[64..].iter().all(|byte| *byte == 200), "in parts of {part}");
        assert!(!accepted.is_empty() && heartbeats.is_sorted_by(|one, next| one.1 < next.1));
        for (at, value) in accepted {
            let (came, _) = heartbeats.iter().find(|(_, came)| *came >= value).expect("it comes");
            // One part, with two headers and heartbeats.
            assert!(came - at <= (128 << 10) + 4 * HEADER + 48, "{at} to {came}, by {part}");
        }
    }
}

#[test]
fn only_heartbeats_overtake() {
    let rows = rows_of(1, &[64 + LONG_BYTES, 64]);
    let mut send_queue = SendQueue::new(false);
    let mut overtakes = |view, write| overtake(&mut send_queue, &rows, ViewId(view), write);
    assert!(!overtakes(1, HEARTBEAT), "there is nothing to overtake");
    add(&mut send_queue, &rows, LONG);
    let mut overtakes = |view, write| overtake(&mut send_queue, &rows, ViewId(view), write);
    assert!(!overtakes(2, HEARTBEAT), "the peer may not know the view");
    assert!(!overtakes(1, Write::of_row(0, 24, Kind::Guard)), "a guard follows its content");
    assert!(!overtakes(1, Write::of_row(64, 24, Kind::Content)), "the list goes there too");
    assert!(!overtakes(1, Write::of_row(56, 24, Kind::Content)), "partly");
    assert!(overtakes(1, HEARTBEAT) && overtakes(1, HEARTBEAT), "a newer one replaces it");
    assert!(!overtakes(1, Write::of_row(32, 8, Kind::Content)), "an accepted write is not lost");
    let regions = &OwnRegions::default();
    let mut send_queue = SendQueue::new(false);
    let list = List { view: ViewId(1), rows: &rows, regions, writes: &[LONG] };
    send_queue.add(&list, true).expect("in the row");
    let may = overtake(&mut send_queue, &rows, ViewId(1), HEARTBEAT);
    assert!(!may, "the peer counts the writes of this list");
}
