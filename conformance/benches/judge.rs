//! The cost of judging, including reading. Run with `cargo bench -p tramontane-conformance`; for
//! histories of millions of records write files with the example `make_history`.

#![allow(missing_docs, clippy::expect_used)]

#[path = "../examples/good_history/mod.rs"]
mod good_history;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use good_history::shards::{self, Shards};
use good_history::{HistoryShape, write};
use tramontane_conformance::check::{Outcome, judge};

const EVENTS: u64 = 100_000;

const CALM: HistoryShape = HistoryShape {
    events: EVENTS,
    nodes: 8,
    groups: 1,
    views: false,
    grouped_by_node: false,
    kill: false,
    restart: false,
    durable: false,
};

const SHARDS: Shards = Shards {
    deliveries: EVENTS,
    groups: 8,
    replicas: 3,
    clients: 100,
    kills: false,
    exchanged: None,
};

fn histories(criterion: &mut Criterion) {
    let shapes = [
        ("8 nodes", CALM),
        ("64 nodes", HistoryShape { nodes: 64, ..CALM }),
        ("8 nodes with views", HistoryShape { views: true, ..CALM }),
        ("8 nodes, one after the other", HistoryShape { grouped_by_node: true, ..CALM }),
        ("8 nodes, one of them killed", HistoryShape { kill: true, ..CALM }),
        (
            "8 nodes, one of them restarted",
            HistoryShape { kill: true, restart: true, durable: true, ..CALM },
        ),
    ];
    let written = shapes.into_iter().map(|(name, shape)| {
        let mut text = Vec::new();
        write(&shape, &mut text).expect("memory takes everything");
        (name, text)
    });
    let of_shards = [("24 replicas", false), ("24 replicas, 8 of them back", true)];
    let of_shards = of_shards.into_iter().map(|(name, kills)| {
        let mut text = Vec::new();
        let shards = Shards { kills, ..SHARDS };
        shards::write(&shards, &mut text).expect("memory takes everything");
        (name, text)
    });
    let mut bench = criterion.benchmark_group("100,000 records");
    bench.throughput(Throughput::Elements(EVENTS)).sample_size(10);
    for (name, text) in written.chain(of_shards) {
        bench.bench_function(name, |bencher| {
            bencher.iter(|| {
                let verdict = judge(&text[..]).expect("the history keeps its rules");
                let broken = verdict
                    .judgements
                    .iter()
                    .find(|of| matches!(of.outcome, Outcome::Broken { .. }));
                assert!(broken.is_none(), "{broken:?}");
                verdict.events
            });
        });
    }
    bench.finish();
}

criterion_group!(benches, histories);
criterion_main!(benches);
