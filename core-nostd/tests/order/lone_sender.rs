//! Messages of a lone sender, which imply its frontier, on a fabric that delivers writes in order.

use crate::common::{Carries, OneMemory, Private, fabric, send};
use tramontane_core::fabric::{Capabilities, ErrorKind, Fabric, Promises, Write};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;

/// Keeps the posted writes for the test to carry.
#[derive(Default)]
struct KeptWrites(Vec<Write>);

impl Carries for KeptWrites {
    fn limits(&self) -> Capabilities {
        let promises =
            OneMemory.limits().promises.difference(Promises::SHARED | Promises::ADDRESS_ORDER);
        Capabilities { promises, ..OneMemory.limits() }
    }
    fn carry(&mut self, _: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        self.0.extend(writes);
        Ok(())
    }
}

fabric!(KeptWrites);

/// Carries one message from member 0 to member 1, write by write. Returns the number of writes, and
/// the number of writes after which the message was delivered, if it was.
fn delivered_after(senders: &[Rank]) -> (usize, Option<usize>) {
    let ids = [NodeId(0), NodeId(1)];
    let ranks = [Rank(0), Rank(1)];
    let subgroup = Subgroup {
        members: &ranks,
        senders,
        window: 4,
        message_max: 100,
        delivery: Delivery::Ordered,
    };
    let subgroups = [subgroup];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("a good group");
    let lines =
        |rank| -> Vec<Line> { (0..layout.row_bytes(rank) / 64).map(|_| Line::new()).collect() };
    // The sender's memory and the receiver's.
    let memory = [[lines(ranks[0]), lines(ranks[1])], [lines(ranks[0]), lines(ranks[1])]];
    let rows: Vec<Vec<Row<'_>>> = memory
        .iter()
        .map(|memory| memory.iter().map(|lines| Row::from_lines(lines)).collect())
        .collect();
    let (mut first, mut second) =
        (Private::new(&layout, ranks[0]), Private::new(&layout, ranks[1]));
    let capabilities = KeptWrites::default().capabilities();
    let row = |rank: usize| RowWriter::from_lines(&memory[rank][rank]);
    let mut sender = first.open(&layout, ranks[0], &rows[0], row(0), capabilities);
    let mut receiver = second.open(&layout, ranks[1], &rows[1], row(1), capabilities);

    send(&sender.outbox(SubgroupId(0)).expect("it sends"), b"alone").expect("there is room");
    let mut fabric = KeptWrites::default();
    sender.step(Time(0), &mut fabric, &mut |_: &mut Batch<'_>| {}).expect("it steps");
    let copy = RowWriter::from_lines(&memory[1][0]);
    let mut delivered = None;
    for (index, write) in fabric.0.iter().enumerate() {
        let mut bytes = vec![0; write.length];
        rows[0][0].read(write.source.offset, &mut bytes).expect("in the row");
        copy.apply(write.target.offset, &bytes).expect("in the row");
        let mut upcall = |batch: &mut Batch<'_>| {
            assert!(batch.all(|message| message.payload == b"alone"));
            delivered = delivered.or(Some(index + 1));
        };
        receiver.step(Time(0), &mut KeptWrites::default(), &mut upcall).expect("it steps");
    }
    (fabric.0.len(), delivered)
}

#[test]
fn lone_senders_message_implies_its_receipt() {
    let (writes, delivered) = delivered_after(&[Rank(0)]);
    assert_eq!(delivered, Some(2), "after content and counter, of {writes} writes");
    assert!(writes > 2, "the sender's frontier comes after them");
}

#[test]
fn message_with_several_senders_does_not_imply_receipt() {
    let (writes, delivered) = delivered_after(&[Rank(0), Rank(1)]);
    assert_eq!(delivered, Some(writes), "only its frontier says what the sender has");
}
