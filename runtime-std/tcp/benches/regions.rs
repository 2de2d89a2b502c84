//! The cost of a write to a region over the loopback: two processes' fabrics, each in a thread that
//! sleeps when it has nothing to do, as hosts do. Run with `cargo bench -p tramontane-tcp`.

#![allow(missing_docs, clippy::expect_used)]

use std::hint::black_box;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tramontane_control::Connection;
use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric, HostFabric as _, HostRegions as _, Kind, Permissions as _,
    Region, Token, ViewPlan, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_tcp::{Rows, Settings, Tcp};

const LOG: Region = Region(1);
const LOG_BYTES: usize = 1 << 20;
const OWNER: NodeId = NodeId(1);
const WRITER: NodeId = NodeId(2);
const VIEW: ViewId = ViewId(1);
const ENTRY_BYTES: usize = 100;

/// Number of lists posted per wait.
const LISTS: u64 = 4000;

const SLEEP_MAX: Duration = Duration::from_millis(50);

fn pair() -> [Connection; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let one = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let (other, _) = listener.accept().expect("it came");
    [one, other].map(|stream| Connection { stream, cipher: None })
}

fn process(node: NodeId) -> Tcp {
    let mut fabric = Tcp::new(node, Settings::default()).expect("descriptors");
    fabric.region(LOG, LOG_BYTES).expect("memory");
    fabric
}

/// Opens a view of two nodes, in which the owner has rank 0.
fn open(fabric: &mut Tcp, view: ViewId, own: Rank, peer: NodeId) -> Rows {
    let plan = [OWNER, peer];
    let plan = ViewPlan::with_sizes(view, own, &plan, &[4096; 2], view.0);
    let rows = fabric.rows(&plan).expect("memory");
    fabric.open(view, &rows.memory()).expect("there is room");
    rows
}

/// Takes the pending events, or sleeps until one arrives.
fn turn(fabric: &mut Tcp, mut told: impl FnMut(Event)) {
    let mut is_any = false;
    while let Some(event) = fabric.poll() {
        is_any = true;
        told(event);
    }
    if !is_any {
        if fabric.arm() {
            fabric.sleep(SLEEP_MAX);
        }
        fabric.disarm();
    }
}

/// Runs `work` with a writer whose owner works in another thread and also has `silent` silent
/// clients.
fn with_writer(silent: u32, work: impl FnOnce(&mut Tcp)) {
    let (mut owner, mut writer) = (process(OWNER), process(WRITER));
    let [here, there] = pair();
    owner.add_peer(WRITER, here).expect("the first");
    writer.add_peer(OWNER, there).expect("the first");
    let mut rows = vec![open(&mut owner, VIEW, Rank(0), WRITER)];
    rows.push(open(&mut writer, VIEW, Rank(1), WRITER));
    let mut clients = Vec::new();
    for number in 0..silent {
        let node = NodeId(100 + number);
        let view = ViewId(100 + u64::from(number));
        let [here, there] = pair();
        owner.add_peer(node, here).expect("a fresh one");
        rows.push(open(&mut owner, view, Rank(0), node));
        clients.push(there);
    }
    while !owner.ready(VIEW, Rank(1)) {
        owner.carry();
        writer.carry();
    }
    owner.grant(VIEW, Rank(1), LOG).expect("it is ready");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                turn(&mut owner, |event| {
                    black_box(event);
                });
            }
        });
        while writer.poll_permission().is_none() {}
        work(&mut writer);
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Returns a list of contiguous entries.
fn list(entries: usize) -> Vec<Write> {
    let area = |place| Area { region: LOG, offset: place * ENTRY_BYTES };
    let entry = |place| Write {
        source: area(place),
        target: area(place),
        length: ENTRY_BYTES,
        kind: Kind::Content,
    };
    (0..entries).map(entry).collect()
}

/// Posts lists, with at most `at_once` in flight, until `lists` are completed.
fn post(fabric: &mut Tcp, list: &[Write], lists: u64, at_once: u64) {
    let (mut posted, mut completed) = (0, 0);
    while completed < lists {
        while posted < lists && posted < completed + at_once {
            match fabric.post(VIEW, Rank(0), list, Some(Token(posted))) {
                Ok(()) => posted += 1,
                Err(ErrorKind::QueueFull) => break,
                Err(kind) => panic!("{kind}"),
            }
        }
        turn(fabric, |event| completed += u64::from(matches!(event, Event::Completed(_))));
    }
}

fn regions(criterion: &mut Criterion) {
    for silent in [0, 200] {
        with_writer(silent, |fabric| {
            let mut bench = criterion.benchmark_group(format!("{silent} silent clients"));
            for entries in [1, 16] {
                let list = list(entries);
                bench.throughput(Throughput::Elements(1));
                bench.bench_function(format!("one list of {entries} x 100 B"), |bencher| {
                    bencher.iter(|| post(fabric, &list, 1, 1));
                });
                bench
                    .throughput(Throughput::Elements(LISTS * u64::try_from(entries).expect("few")));
                bench.bench_function(format!("64 lists at once of {entries} x 100 B"), |bencher| {
                    bencher.iter(|| post(fabric, &list, LISTS, 64));
                });
            }
            bench.finish();
        });
    }
}

criterion_group!(benches, regions);
criterion_main!(benches);
