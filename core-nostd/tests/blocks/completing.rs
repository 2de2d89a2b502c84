//! Tests when a member completes a message: once the whole message is in its final memory and no
//! notices are owed.

use super::member::{BLOCK, OTHER, ROOT, Willing, area, setup, way, with_member, with_peers};
use tramontane_core::fabric::{Area, BlockEvent, ErrorKind, Promises, ViewMemory};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{BlockGroup, MessageMemory, Setup};

/// Longer than the bytes that one step copies, and not a multiple of them.
const LONG: usize = 150_000;

/// Offset of the incoming message.
const PLACE: usize = 200_000;

/// Records each copy, and the number of copies made when a message was completed.
#[derive(Default)]
struct Copied {
    pieces: Vec<(Area, Area, usize)>,
    completed_after: Option<usize>,
}

impl MessageMemory for Copied {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Area> {
        Some(area(PLACE))
    }
    fn place(&mut self, from: Area, to: Area, length: usize) {
        self.pieces.push((from, to, length));
    }
    fn completed(&mut self, _: u64, bytes: usize) {
        assert_eq!(bytes, LONG);
        self.completed_after = Some(self.pieces.len());
    }
}

/// RDM-5: the first block of a message is copied from staging in pieces, so that no step takes
/// long. Before that, the block is forwarded to the next member.
#[test]
fn message_completes_after_its_first_block_is_copied() {
    let lines: [[Line; 1]; 4] = Default::default();
    let nodes = [NodeId(1), NodeId(2), NodeId(3), NodeId(4)];
    let ranks = [Rank(0), Rank(1), Rank(2), Rank(3)];
    let rows: Vec<Row<'_>> = lines.iter().map(|lines| Row::from_lines(lines)).collect();
    let row = RowWriter::from_lines(&lines[1]);
    let memory = ViewMemory { own: Rank(1), members: &nodes, row, rows: &rows };
    let mut fabric = Willing::new(Promises::WRITE_ORDER);
    fabric.memory_bytes = PLACE + LONG;
    let setup = Setup { block_bytes: LONG, ..setup(&ranks, Algorithm::Chain) };
    let (mut words, mut copied) = ([0; 1], Copied::default());
    let mut group = BlockGroup::open(setup, &memory, &fabric, &mut words).expect("a group");
    group.step(&mut fabric, &mut copied);
    let token = fabric.receives[0].1;
    let whole = BlockEvent::Received { way: way(ROOT), token, immediate: 1, length: LONG };
    group.take(&whole, &mut copied);
    // The next member in the chain is ready for the block.
    RowWriter::from_lines(&lines[2]).cell(0).expect("in the line").publish(1);
    let mut sent_before = None;
    for _ in 0..10 {
        let progress = group.step(&mut fabric, &mut copied);
        if copied.completed_after.is_some() {
            break;
        }
        sent_before = sent_before.or((!copied.pieces.is_empty()).then_some(fabric.sends));
        assert!(progress.has_more || progress.posts > 0, "nothing else wakes it");
        if std::mem::take(&mut fabric.sends) > 0 {
            let sent = BlockEvent::Sent { way: way(OTHER), token };
            group.take(&sent, &mut copied);
        }
    }
    assert_eq!(sent_before, Some(0), "it was sent in a step before");
    assert_eq!(fabric.numbers, [1]);
    let at = |offset: usize, length| (area(offset), area(PLACE + offset), length);
    let piece = 1 << 16;
    assert_eq!(copied.pieces, [at(0, piece), at(piece, piece), at(2 * piece, LONG - 2 * piece)]);
    assert_eq!((copied.completed_after, group.completed()), (Some(3), 1));
}

/// The application may reuse a message's memory once the message is complete, so no block may still
/// be in flight from that memory.
#[test]
fn message_completes_after_its_last_block_is_sent() {
    with_peers(Algorithm::Chain, Default::default(), |mut group, fabric, messages, say| {
        group.step(fabric, messages);
        let token = fabric.receives[0].1;
        let whole = BlockEvent::Received { way: way(ROOT), token, immediate: 1, length: BLOCK };
        group.take(&whole, messages);
        say(OTHER, 0, 1);
        for _ in 0..3 {
            group.step(fabric, messages);
        }
        assert_eq!((fabric.sends, &messages.completed[..]), (1, &[][..]));
        assert!(group.step(fabric, messages).is_idle(), "it waits for that alone");
        group.take(&BlockEvent::Sent { way: way(OTHER), token }, messages);
        group.step(fabric, messages);
        assert_eq!(messages.completed, [BLOCK]);
    });
}

/// On shared memory, a peer can see a posted receive before its notice is sent, and can send the
/// block. The message is then whole, but its member first sends the notice that it owes, because
/// the next message needs another notice.
#[test]
fn message_completes_after_its_pending_notice_is_sent() {
    with_member(Algorithm::Sequential, Default::default(), |mut group, fabric, messages| {
        fabric.refuses = Some(ErrorKind::QueueFull);
        group.step(fabric, messages);
        let token = fabric.receives[0].1;
        let whole = BlockEvent::Received { way: way(ROOT), token, immediate: 1, length: BLOCK };
        group.take(&whole, messages);
        for _ in 0..3 {
            fabric.posts.clear();
            assert!(group.step(fabric, messages).has_more);
            assert_eq!((&fabric.posts[..], &messages.completed[..]), (&[ROOT][..], &[][..]));
        }
        fabric.refuses = None;
        fabric.posts.clear();
        group.step(fabric, messages);
        assert_eq!((&fabric.posts[..], &messages.completed[..]), (&[ROOT][..], &[BLOCK][..]));
    });
}
