//! A group that goes through many view changes, during which memory, descriptors and threads must
//! not grow.
//!
//! Nodes 0 and 1 stay, and node 2 repeatedly joins and leaves, which causes two view changes per
//! turn. The resources of the process are counted between two turns, when there are two members and
//! nothing is in flight, early in the run and at its end.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::io::{Cursor, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Application, Description, Forming, Messages, Running, StartOptions, ViewChanged, start,
};
use tramontane_runtime::shared_memory::Root;

const PATIENCE: Duration = Duration::from_secs(30);

/// The number of view changes in a run.
const VIEW_CHANGES: u64 = 10_000;

/// The number of turns after which everything that is allocated only once has been allocated.
const WARM_UP_TURNS: u64 = 10;

/// The number of freed bytes that the heap may retain, independent of the number of views.
const SLACK_BYTES: u64 = 4 << 20;

/// The number of mappings that may remain, because each thread's heap may have one or two of its
/// own.
const SLACK_MAPPINGS: usize = 64;

/// An application that keeps only the number of its view.
#[derive(Default)]
struct ViewNumber(Arc<AtomicU64>);

impl Application for ViewNumber {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        messages.for_each(drop);
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        self.0.store(change.view.id.0, Ordering::Release);
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        Box::new(Cursor::new(Vec::new()))
    }

    fn restore(&mut self, _: SubgroupId, state: &mut dyn Read) -> std::io::Result<()> {
        state.read_to_end(&mut Vec::new()).map(drop)
    }
}

/// The resources that this process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
    resident_bytes: u64,
    mappings: usize,
}

impl Held {
    fn now() -> Self {
        let count = |folder: &str| std::fs::read_dir(folder).expect("/proc is there").count();
        let statm = std::fs::read_to_string("/proc/self/statm").expect("/proc is there");
        let pages: u64 = statm
            .split(' ')
            .nth(1)
            .and_then(|field| field.parse().ok())
            .expect("a number of pages");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is there");
        Self {
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
            resident_bytes: pages * 4096,
            mappings: maps.lines().count(),
        }
    }
}

struct Group {
    description: Description,
    listeners: Vec<TcpListener>,
    root: tempfile::TempDir,
    view: Arc<AtomicU64>,
}

impl Group {
    fn of(carrier: Carrier) -> Self {
        let mut description = Description::local("many-views", 3, 8, 16);
        description.initial = vec![0, 1];
        description.fabric = carrier;
        // No member may be considered dead here.
        description.failure_timeout_ms = 10_000;
        let mut listeners = Vec::new();
        if carrier == Carrier::Tcp {
            for node in &mut description.nodes {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
                node.address = listener.local_addr().ok().map(Into::into);
                listeners.push(listener);
            }
        }
        let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
        Self { description, listeners, root, view: Arc::default() }
    }

    /// Starts a node; node 0 keeps the number of its view.
    fn start(&self, node: u32) -> Running {
        let listener = self.listeners.get(node as usize).map(|listener| {
            listener.try_clone().expect("a handle").try_into().expect("it listens")
        });
        let view = if node == 0 { Arc::clone(&self.view) } else { Arc::default() };
        let options = StartOptions {
            root: Root::under(self.root.path()),
            listener,
            time_limit: PATIENCE,
            forming: Forming { new_group: true, ..Forming::default() },
            ..StartOptions::new(node)
        };
        start(self.description.clone(), options, ViewNumber(view)).expect("it becomes a member")
    }

    fn await_view(&self, view: u64) {
        let began = Instant::now();
        while self.view.load(Ordering::Acquire) < view {
            assert!(began.elapsed() < PATIENCE, "view {view} does not come");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Waits until the last view's memory and threads have been released, as far as they are
    /// released at all.
    fn settled(&self, early: Option<Held>) -> Held {
        let began = Instant::now();
        loop {
            let held = Held::now();
            let is_flat = early.is_some_and(|early| held.is_no_more_than(&early));
            if is_flat || began.elapsed() > Duration::from_secs(3) {
                return held;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Held {
    fn is_no_more_than(&self, early: &Self) -> bool {
        self.descriptors <= early.descriptors
            && self.threads <= early.threads
            && self.mappings <= early.mappings + SLACK_MAPPINGS
            && self.resident_bytes <= early.resident_bytes + SLACK_BYTES
    }
}

/// Runs [`VIEW_CHANGES`] view changes, or the number given in `TRAMONTANE_VIEW_CHANGES`, and
/// compares the resources held after a few of them with those held at the end.
fn live_through(carrier: Carrier) {
    let wanted = std::env::var("TRAMONTANE_VIEW_CHANGES").ok();
    let view_changes = wanted.map_or(VIEW_CHANGES, |text| text.parse().expect("a number"));
    let group = Group::of(carrier);
    let (zero, one) = std::thread::scope(|scope| {
        let zero = scope.spawn(|| group.start(0));
        let one = scope.spawn(|| group.start(1));
        (zero.join().expect("it starts"), one.join().expect("it starts"))
    });
    let began = Instant::now();
    let mut early = None;
    let turns = view_changes / 2;
    for turn in 0..turns {
        if turn == WARM_UP_TURNS {
            early = Some(group.settled(None));
        }
        let first = group.view.load(Ordering::Acquire);
        let two = group.start(2);
        group.await_view(first + 1);
        two.leave(PATIENCE).expect("it leaves");
        group.await_view(first + 2);
    }
    let early = early.expect("more turns than warm it up");
    let late = group.settled(Some(early));
    println!("{carrier}: {view_changes} view changes in {:?}", began.elapsed());
    println!("{carrier}: early {early:?}");
    println!("{carrier}: late  {late:?}");
    assert!(group.view.load(Ordering::Acquire) > 2 * turns, "all views were installed");
    assert!(late.is_no_more_than(&early), "{carrier}: {early:?} grew to {late:?}");
    for running in [zero, one] {
        running.close();
    }
}

/// Other tests of this program hold memory too, so this test runs by itself: in `.ci/full`, and
/// with `cargo test --test groups -- --ignored --test-threads 1 many_views`.
#[test]
#[ignore = "takes minutes, and must run alone"]
fn view_changes_over_shared_memory_leak_nothing() {
    live_through(Carrier::SharedMemory);
}

#[test]
#[ignore = "takes minutes, and must run alone"]
fn view_changes_over_tcp_leak_nothing() {
    live_through(Carrier::Tcp);
}
