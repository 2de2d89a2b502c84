//! The cost of a list to a peer's region, posted by one thread and applied by another or by the
//! same thread, and the cost of a poll next to many idle views. Run with `cargo bench -p
//! tramontane-shared-memory`.

#![allow(missing_docs, clippy::expect_used)]

#[path = "../tests/members/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::{LONG, NEVER, SharedFolder, name};
use tramontane_core::fabric::{
    Area, Event, Fabric as _, HostFabric as _, HostRegions as _, Kind, Permissions as _, Region,
    Token, ViewPlan, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_shared_memory::{Mappings, Residence, SharedMemory};

const LOG: Region = Region(1);
const LOG_BYTES: usize = 1 << 20;

/// Size of an entry in bytes. Its offset in the log is a whole number of cells.
const ENTRY_BYTES: usize = 100;
const ENTRY_PLACE: usize = 104;

/// Two members within this process that share several views. The first writes to the second's log
/// in the first view.
struct Pair {
    fabrics: [SharedMemory; 2],
    _rows: Vec<Mappings>,
    _place: SharedFolder,
}

impl Pair {
    fn new(views: u64) -> Self {
        let place = SharedFolder::new();
        let nodes = [NodeId(1), NodeId(2)];
        let mut fabrics = nodes.map(|node| {
            let residence =
                Residence::claim(&place.root(), &name("bench"), node, 1, 1, LONG, &NEVER);
            let mut fabric = SharedMemory::for_residence(&Arc::new(residence.expect("a place")));
            fabric.region(LOG, LOG_BYTES).expect("memory");
            fabric
        });
        let mut rows = Vec::new();
        for view in 1..=views {
            for (own, fabric) in (0..).map(Rank).zip(&mut fabrics) {
                let plan = ViewPlan::with_sizes(ViewId(view), own, &nodes, &[64, 64], view);
                let made = fabric.rows(&plan).expect("memory");
                fabric.open(ViewId(view), &made.memory()).expect("opens");
                rows.push(made);
            }
        }
        let mut pair = Self { fabrics, _rows: rows, _place: place };
        pair.await_that(|[one, other]| {
            (1..=views)
                .map(ViewId)
                .all(|view| one.ready(view, Rank(1)) && other.ready(view, Rank(0)))
        });
        pair.fabrics[1].grant(VIEW, Rank(0), LOG).expect("a right");
        pair.await_that(|[one, _]| one.post(VIEW, Rank(1), &entries(0, 1, 1), None).is_ok());
        pair
    }

    fn await_that(&mut self, mut is_so: impl FnMut(&mut [SharedMemory; 2]) -> bool) {
        let until = Instant::now() + LONG;
        while !is_so(&mut self.fabrics) {
            assert!(Instant::now() < until, "it never is");
            for fabric in &mut self.fabrics {
                fabric.check_peers();
                while fabric.poll().is_some() {}
            }
        }
        self.fabrics.iter_mut().for_each(|fabric| while fabric.poll().is_some() {});
    }
}

const VIEW: ViewId = ViewId(1);

/// Returns the `turn`th list, with this number of entries and writes.
fn entries(turn: u64, entries: usize, writes: usize) -> Vec<Write> {
    let each = entries.div_ceil(writes);
    let lists = LOG_BYTES / (entries * ENTRY_PLACE);
    let start = usize::try_from(turn).expect("few") % lists * entries * ENTRY_PLACE;
    let write = |index: usize| {
        let area = Area { region: LOG, offset: start + index * each * ENTRY_PLACE };
        let length = (each - 1) * ENTRY_PLACE + ENTRY_BYTES;
        Write { source: area, target: area, length, kind: Kind::Content }
    };
    (0..writes).map(write).collect()
}

/// Numbers of entries and writes per list.
const SHAPES: [(usize, usize); 3] = [(1, 1), (16, 1), (16, 16)];

fn lists_of(shape: (usize, usize)) -> Vec<Vec<Write>> {
    (0..64).map(|turn| entries(turn, shape.0, shape.1)).collect()
}

/// Posts `count` lists as fast as there is room, and waits until the last is completed.
fn stream(writer: &mut SharedMemory, lists: &[Vec<Write>], count: u64) -> Duration {
    let started = Instant::now();
    let (mut posted, mut is_done) = (0, false);
    let mut turns = lists.iter().cycle();
    let mut next = turns.next().expect("lists");
    while !is_done {
        if posted < count {
            // Every 16th list has a token, as a leader has one per step.
            let token = (posted % 16 == 0 || posted + 1 == count).then_some(Token(posted));
            if writer.post(VIEW, Rank(1), next, token).is_ok() {
                posted += 1;
                next = turns.next().expect("lists");
                continue;
            }
        }
        std::thread::yield_now();
        while let Some(event) = writer.poll() {
            is_done |= event == Event::Completed(Token(count - 1)) && posted == count;
        }
    }
    started.elapsed()
}

/// Lists per turn with two threads.
const LISTS: u64 = 4096;

fn two_threads(criterion: &mut Criterion) {
    let mut bench = criterion.benchmark_group("post here, apply there");
    for shape in SHAPES {
        let lists = lists_of(shape);
        bench.throughput(Throughput::Elements(shape.0 as u64 * LISTS));
        bench.bench_function(format!("{} entries in {} writes", shape.0, shape.1), |bencher| {
            let mut pair = Pair::new(1);
            let [writer, owner] = &mut pair.fabrics;
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        black_box(owner.poll());
                        // The writer may have to share the processor.
                        std::thread::yield_now();
                    }
                });
                bencher.iter_custom(|count| stream(writer, &lists, count * LISTS));
                is_over.store(true, Ordering::Relaxed);
            });
        });
    }
    bench.finish();
}

fn one_thread(criterion: &mut Criterion) {
    let mut bench = criterion.benchmark_group("post, apply and hear in one thread");
    for shape in SHAPES {
        let lists = lists_of(shape);
        bench.throughput(Throughput::Elements(shape.0 as u64));
        bench.bench_function(format!("{} entries in {} writes", shape.0, shape.1), |bencher| {
            let mut pair = Pair::new(1);
            let [writer, owner] = &mut pair.fabrics;
            let mut turns = lists.iter().cycle();
            bencher.iter(|| {
                let list = turns.next().expect("lists");
                writer.post(VIEW, Rank(1), list, Some(Token(1))).expect("room");
                assert_eq!(owner.poll(), None);
                assert_eq!(writer.poll(), Some(Event::Completed(Token(1))));
            });
        });
    }
    bench.finish();
}

fn idle(criterion: &mut Criterion) {
    let mut bench = criterion.benchmark_group("a poll with nothing to report");
    for views in [1, 256] {
        bench.bench_function(format!("{views} views, one with a writer"), |bencher| {
            let mut pair = Pair::new(views);
            let [_, owner] = &mut pair.fabrics;
            bencher.iter(|| black_box(owner.poll()));
        });
    }
    bench.finish();
}

criterion_group!(benches, one_thread, two_threads, idle);
criterion_main!(benches);
