use tramontane_core::fabric::{ViewRows as _, Write};

use crate::lent_content::CELL;
use crate::memory::rows_of;

use super::*;

const CELLS: usize = 128;

fn add(send_queue: &mut SendQueue, rows: &Rows, write: Write) {
    let (view, regions) = (ViewId(1), &OwnRegions::default());
    send_queue.add(&List { view, rows, regions, writes: &[write] }).expect("in the row");
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
