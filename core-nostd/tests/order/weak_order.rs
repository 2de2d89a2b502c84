//! Reads that a node must do after a barrier (HAL-1), on a machine where a peer's writes become
//! visible late.

use crate::common::{Carries, OneMemory, fabric, send, with_rows};
use tramontane_core::fabric::{Capabilities, Fabric};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::RowWriter;
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Node, Progress};

/// A reader whose barrier makes a counter visible that a peer published long before (HAL-1).
struct Late<'r> {
    row: &'r RowWriter<'r>,
    at: usize,
    counter: u64,
}

impl Carries for Late<'_> {
    fn limits(&self) -> Capabilities {
        OneMemory.limits()
    }
    fn barrier(&self) {
        self.row.cell(self.at).expect("a counter").publish(self.counter);
    }
}

fabric!(Late<'_>);

/// Messages of another member after the one that is visible late.
const LATER: u8 = 5;

fn step(node: &mut Node<'_>, fabric: &mut impl Fabric) -> Progress {
    node.step(Time(0), fabric, &mut |_: &mut Batch<'_>| {}).expect("it steps")
}

/// HAL-1: rounds used in silence imply that all messages published before them have arrived. A
/// member that sees more such rounds therefore looks for those messages after a barrier.
#[test]
fn late_visible_message_is_not_skipped_as_null() {
    let ranks = [Rank(0), Rank(1), Rank(2)];
    let subgroups = [Subgroup {
        members: &ranks,
        senders: &ranks,
        window: 8,
        message_max: 16,
        delivery: Delivery::Ordered,
    }];
    let group = Group { members: &[NodeId(0), NodeId(1), NodeId(2)], subgroups: &subgroups };
    let layout = Layout::new(group).expect("a good group");
    let ring = layout.ring(Rank(0), SubgroupId(0)).expect("it sends");
    let at = ring.offset + ring.stride - 8;
    with_rows(&layout, |nodes, outboxes, rows| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        send(outbox, &[7]).expect("room");
        step(&mut nodes[0], &mut OneMemory);
        outbox.declare_silence(u64::from(LATER));
        let cell = rows[0].cell(at).expect("a counter");
        let mut late = Late { row: &rows[0], at, counter: cell.load() };
        cell.publish(0);
        let other = outboxes[1].as_ref().expect("a sender");
        for message in 0..LATER {
            send(other, &[message]).expect("room");
        }
        step(&mut nodes[1], &mut OneMemory);
        assert_eq!(step(&mut nodes[2], &mut OneMemory).received, u32::from(LATER));
        // Member 2's message uses its first round, and it uses the later rounds of member 1 in
        // silence.
        assert!(step(&mut nodes[0], &mut OneMemory).nulls > 0);
        assert_eq!(step(&mut nodes[2], &mut late).received, 1);
    });
}
