//! Instruction counts of a message and of an idle step, which are the same in each run, unlike
//! times. `core-nostd/benches/count` runs this under callgrind and subtracts the counts of two runs
//! of different lengths, to exclude the cost of opening the group.
//!
//! Usage: `instructions ROUNDS WORKLOAD BYTES [checks]`; a workload is `all`, `one`, `idle`, or
//! `among-idle`: all send in one of 51 subgroups, and the others are idle.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::as_conversions,
    clippy::arithmetic_side_effects
)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{OneMemory, with_layout};
use tramontane_core::ids::{NodeId, Rank, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::multicast::Batch;
use tramontane_core::node::Node;
use tramontane_core::smc::Outbox;

/// Messages of each sender between steps.
const BURST: u32 = 25;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [rounds, workload, bytes, checks @ ..] = &*arguments else { return };
    let rounds: u64 = rounds.parse().expect("a number of rounds");
    let bytes: u32 = bytes.parse().expect("a number of bytes");
    let senders: &[u16] = match workload.as_str() {
        "all" | "among-idle" => &[0, 1],
        "one" => &[0],
        _ => &[],
    };
    let ranks = [Rank(0), Rank(1)];
    let subgroup = Subgroup {
        members: &ranks,
        senders: &ranks,
        window: 100,
        message_max: bytes,
        delivery: Delivery::Ordered,
    };
    let count = if workload == "among-idle" { 51 } else { 1 };
    let subgroups = vec![subgroup; count];
    let group = Group { members: &[NodeId(0), NodeId(1)], subgroups: &subgroups };
    let layout = Layout::new(group).expect("a good group");
    let layout = if checks.is_empty() { Ok(layout) } else { layout.with_checks() };
    with_layout(&layout.expect("it fits"), |nodes, outboxes| {
        let mut delivered = 0;
        for _ in 0..rounds {
            round(nodes, outboxes, senders, bytes, &mut delivered);
        }
        println!("{delivered} messages delivered");
    });
}

/// Lets each sender send a burst, and each member step.
fn round(
    nodes: &mut [Node<'_>],
    outboxes: &[Option<Outbox<'_>>],
    senders: &[u16],
    bytes: u32,
    delivered: &mut u64,
) {
    for (rank, (node, outbox)) in (0..).zip(nodes.iter_mut().zip(outboxes.iter().flatten())) {
        if senders.contains(&rank) {
            let mut run = outbox.reserve_run(BURST).expect("slots are free");
            while let Ok(Some(mut slot)) = run.next(bytes as usize) {
                slot.payload().fill(7);
                slot.commit();
            }
        }
        let mut read = |batch: &mut Batch<'_>| batch.for_each(|_| *delivered += 1);
        node.step(Time(0), &mut OneMemory, &mut read).expect("it steps");
    }
}
