//! The cost of a message in steps only: two members in the same memory and thread, so that no cache
//! line moves. Run it with `cargo bench -p tramontane-core --features views`, or count instructions
//! with `valgrind --tool=callgrind` on the binary that it builds, with `--profile-time 1`.

#![allow(missing_docs, clippy::expect_used, clippy::indexing_slicing, clippy::integer_division)]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/steady_view/mod.rs"]
mod steady_view;

use common::{OneMemory, with_group};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tramontane_core::ids::{Rank, Time};
use tramontane_core::layout::Delivery;
use tramontane_core::multicast::Batch;

/// Messages of each member between steps.
const BURST: u32 = 25;

fn all_send(criterion: &mut Criterion) {
    let mut bench = criterion.benchmark_group("two members, one thread, 1 byte");
    bench.throughput(Throughput::Elements(u64::from(BURST).saturating_mul(4)));
    bench.bench_function("25 messages each, delivered at both", |bencher| {
        with_group(2, &[0, 1], (100, 1), Delivery::Ordered, |nodes, outboxes| {
            let mut sum = 0_u64;
            bencher.iter(|| {
                for (node, outbox) in nodes.iter_mut().zip(outboxes.iter().flatten()) {
                    let mut run = outbox.reserve_run(BURST).expect("slots are free");
                    while let Ok(Some(mut slot)) = run.next(1) {
                        slot.payload().fill(7);
                        slot.commit();
                    }
                    let mut read = |batch: &mut Batch<'_>| {
                        for message in batch {
                            sum = sum.wrapping_add(
                                message.payload.first().copied().map_or(0, u64::from),
                            );
                        }
                    };
                    node.step(Time(0), &mut OneMemory, &mut read).expect("it steps");
                }
            });
            assert!(sum > 0, "something was delivered");
        });
    });
    bench.finish();
}

fn idle(criterion: &mut Criterion) {
    criterion.bench_function("an idle step of a member of two", |bencher| {
        with_group(2, &[0, 1], (100, 1), Delivery::Ordered, |nodes, _| {
            let node = nodes.first_mut().expect("two of them");
            bencher.iter(|| node.step(Time(0), &mut OneMemory, &mut |_: &mut Batch<'_>| {}));
        });
    });
}

fn look(criterion: &mut Criterion) {
    for (members, subgroups) in [(16, 4), (256, 16)] {
        let name = format!("a look at a steady view, {members} members, {subgroups} subgroups");
        criterion.bench_function(&name, |bencher| {
            steady_view::with_view(Rank(1), (members, subgroups), |look| bencher.iter(look));
        });
    }
}

criterion_group!(benches, all_send, idle, look);
criterion_main!(benches);
