//! The bounds of a step, checked in runs that reach them.

use crate::common::{Carries, Private, fabric, send};
use tramontane_core::check::Checks;
use tramontane_core::fabric::{Capabilities, ErrorKind, Promises, Write};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time};
use tramontane_core::layout::{Delivery, Group, Layout, StepBounds, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Node, Options};

const RANKS: [Rank; 3] = [Rank(0), Rank(1), Rank(2)];
const NODES: [NodeId; 3] = [NodeId(0), NodeId(1), NodeId(2)];

/// A fabric in which each member has copies of the others' rows. The queue to a peer is
/// occasionally full, and writes are counted.
struct CountingFabric<'r> {
    row: RowWriter<'r>,
    /// Copies of the local row, by holder.
    copies: [RowWriter<'r>; 3],
    promises: Promises,
    random: u64,
    writes: u64,
    bytes: u64,
}

impl Carries for CountingFabric<'_> {
    fn limits(&self) -> Capabilities {
        Capabilities {
            promises: self.promises,
            writes_max: 5,
            write_bytes_max: 4096,
            guard_bytes_max: 64,
            write_overhead_bytes: 24,
        }
    }
    fn carry(&mut self, to: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        if self.chance(60) {
            return Err(ErrorKind::QueueFull);
        }
        for write in writes {
            let mut bytes = vec![0; write.length];
            self.row.reader().read(write.source.offset, &mut bytes).expect("in the row");
            self.copies[to.index()].apply(write.target.offset, &bytes).expect("in the row");
        }
        self.writes += writes.len() as u64;
        self.bytes += writes.iter().map(|write| write.length as u64).sum::<u64>();
        Ok(())
    }
}

impl CountingFabric<'_> {
    fn chance(&mut self, percent: u64) -> bool {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 100 < percent
    }
}

fabric!(CountingFabric<'_>);

/// Runs three members for a while, and returns the largest counts of any step.
fn busiest(
    delivery: Delivery,
    promises: Promises,
    messages_max: u32,
    checks: Checks,
) -> (StepBounds, StepBounds) {
    let subgroups =
        [Subgroup { members: &RANKS, senders: &RANKS, window: 6, message_max: 20, delivery }];
    let layout = Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("good");
    let layout = if checks.is_on() { layout.with_checks().expect("small") } else { layout };
    let lines =
        |rank: &Rank| (0..layout.row_bytes(*rank) / 64).map(|_| Line::new()).collect::<Vec<_>>();
    // Memory, indexed by holder, then by owner.
    let memory: Vec<Vec<Vec<Line>>> =
        RANKS.iter().map(|_| RANKS.iter().map(lines).collect()).collect();
    let rows: Vec<Vec<Row<'_>>> = memory
        .iter()
        .map(|held| held.iter().map(|lines| Row::from_lines(lines)).collect())
        .collect();
    let mut private: Vec<Private> = RANKS.iter().map(|rank| Private::new(&layout, *rank)).collect();
    let options = Options { messages_max, ..Options::default() };
    let mut members: Vec<(Node<'_>, CountingFabric<'_>)> = Vec::new();
    for ((rank, private), seed) in RANKS.iter().zip(&mut private).zip(1..) {
        let copy = |holder: usize| RowWriter::from_lines(&memory[holder][rank.index()]);
        let (row, copies) = (copy(rank.index()), [copy(0), copy(1), copy(2)]);
        let fabric = CountingFabric { row, copies, promises, random: seed, writes: 0, bytes: 0 };
        let rows = &rows[rank.index()];
        let node = private.open_with(&layout, *rank, rows, row, fabric.limits(), options);
        members.push((node, fabric));
    }
    let mut most = StepBounds::default();
    for _ in 0..6_000 {
        for (node, fabric) in &mut members {
            if fabric.chance(60) {
                let outbox = node.outbox(SubgroupId(0)).expect("a sender");
                while send(&outbox, &[1; 20]).is_ok() {}
            }
            if fabric.chance(40) {
                continue;
            }
            (fabric.writes, fabric.bytes) = (0, 0);
            let mut nothing = |_: &mut Batch<'_>| {};
            let did = node.step(Time(0), fabric, &mut nothing).expect("it steps");
            assert_eq!(did.lost, None);
            most.sent = most.sent.max(u64::from(did.sent));
            most.received = most.received.max(u64::from(did.received));
            most.delivered = most.delivered.max(did.delivered);
            most.writes = most.writes.max(fabric.writes);
            most.posted_bytes = most.posted_bytes.max(fabric.bytes);
        }
    }
    (most, layout.step_bounds(Rank(0), messages_max))
}

#[test]
fn steps_reach_but_never_exceed_their_bounds() {
    for delivery in [Delivery::Ordered, Delivery::Unordered] {
        for promises in [Promises::WRITE_ORDER, Promises::all().difference(Promises::SHARED)] {
            for limit in [1, 2, 5, u32::MAX] {
                for checks in [Checks::Off, Checks::On] {
                    let (most, bounds) = busiest(delivery, promises, limit, checks);
                    let is_within = most.sent <= bounds.sent
                        && most.received <= bounds.received
                        && most.delivered <= bounds.delivered
                        && most.writes <= bounds.writes
                        && most.posted_bytes <= bounds.posted_bytes;
                    assert!(is_within, "{delivery:?}, {limit}: {most:?} of {bounds:?}");
                    let reached = (most.sent, most.received) == (bounds.sent, bounds.received);
                    assert!(reached, "{delivery:?}, {limit}: {most:?} of {bounds:?}");
                    assert!(most.delivered > 0 && most.delivered * 2 >= bounds.delivered.min(6));
                }
            }
        }
    }
}

/// COR-1: a member's bounds depend on its subgroups, and on whether it sends in them.
#[test]
fn step_bounds_depend_on_membership_and_sending() {
    let subgroups = [Subgroup {
        members: &RANKS[..2],
        senders: &RANKS[..1],
        window: 6,
        message_max: 20,
        delivery: Delivery::Ordered,
    }];
    let layout = Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("good");
    let [sender, listener, stranger] = RANKS.map(|rank| layout.step_bounds(rank, u32::MAX));
    assert_eq!((sender.sent, sender.received, sender.delivered), (6, 0, 6));
    assert_eq!((listener.sent, listener.received, listener.delivered), (0, 6, 6));
    // The receiver posts its counts to the sender.
    assert!(listener.writes > 0 && listener.writes < sender.writes);
    assert_eq!(stranger, StepBounds::default());
    // A step limited to zero messages could never take one, so it may take one.
    assert_eq!(layout.step_bounds(Rank(1), 0), layout.step_bounds(Rank(1), 1));
}
