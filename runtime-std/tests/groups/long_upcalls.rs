//! A member whose application is slow in each call stays in the group, although its calls take much
//! longer in total than the failure timeout.

#![allow(clippy::expect_used, clippy::panic)]

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::Switches;
use tramontane_core::node::Options;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Application, Description, Forming, Messages, Running, StartOptions, start,
};
use tramontane_runtime::member::Settings;
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::Root;

const GROUP: SubgroupId = SubgroupId(0);

const NODES: u32 = 3;

/// The slow node.
const SLOW: u32 = 2;

/// The duration of each of the slow node's calls. 64 of them take much longer than the failure
/// timeout.
const CALL: Duration = Duration::from_millis(120);

const FAILURE_TIMEOUT_MS: u64 = 3_000;

const CALLS: u64 = 75;

/// A time limit longer than any operation takes here.
const LONG: Duration = Duration::from_secs(120);

struct Slow {
    delivered: Arc<Mutex<Vec<u64>>>,
    calls: Arc<AtomicU64>,
    takes: Duration,
}

impl Application for Slow {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let numbers = messages.map(|message| {
            u64::from_le_bytes(message.payload[..8].try_into().expect("a number"))
                | u64::from(message.sender.get()) << 32
        });
        self.delivered.lock().expect("nobody panics").extend(numbers);
        self.calls.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.takes);
    }
}

struct Member {
    running: Running,
    delivered: Arc<Mutex<Vec<u64>>>,
    calls: Arc<AtomicU64>,
}

fn join(
    (description, root): (&Description, &Root),
    (node, listener): (u32, Option<&TcpListener>),
    batching: bool,
) -> Member {
    let (delivered, calls) = (Arc::<Mutex<Vec<u64>>>::default(), Arc::<AtomicU64>::default());
    let never = AtomicBool::new(false);
    let off = if batching { Switches::empty() } else { Switches::DELIVERY_BATCHING };
    let node_options = Options { switches: Switches::all().difference(off), ..Options::default() };
    let options = StartOptions {
        node,
        root: root.clone(),
        device: DeviceOptions::default(),
        listener: listener.map(|listener| {
            listener.try_clone().expect("a handle").try_into().expect("it listens")
        }),
        time_limit: LONG,
        cancel: &never,
        settings: Settings { options: node_options, ..Settings::default() },
        forming: Forming { new_group: true, ..Forming::default() },
        ..StartOptions::new(node)
    };
    let takes = if node == SLOW { CALL } else { Duration::ZERO };
    let application = Slow { delivered: Arc::clone(&delivered), calls: Arc::clone(&calls), takes };
    let running = start(description.clone(), options, application);
    Member {
        running: running.unwrap_or_else(|error| panic!("node {node}: {error}")),
        delivered,
        calls,
    }
}

fn run(carrier: Carrier, batching: bool) {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let root = Root::under(folder.path());
    let mut description = Description::local("slow", NODES, 4, 16);
    description.heartbeat_ms = 10;
    description.failure_timeout_ms = FAILURE_TIMEOUT_MS;
    let mut listeners = Vec::new();
    if carrier != Carrier::SharedMemory {
        description.fabric = carrier;
        for node in &mut description.nodes {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            node.address = Some(listener.local_addr().expect("an address").into());
            listeners.push(listener);
        }
    }
    let members: Vec<Member> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..NODES)
            .map(|node| {
                let (place, listeners) = ((&description, &root), &listeners);
                scope.spawn(move || join(place, (node, listeners.get(node as usize)), batching))
            })
            .collect();
        starting.into_iter().map(|starting| starting.join().expect("it starts")).collect()
    });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for member in &members {
            let (mut sender, is_over) =
                (member.running.sender_of(GROUP).expect("it sends"), &is_over);
            scope.spawn(move || {
                let mut number = 0_u64;
                while !is_over.load(Ordering::Relaxed)
                    && sender.send(&number.to_le_bytes(), LONG).is_ok()
                {
                    number += 1;
                }
            });
        }
        let slow = &members[SLOW as usize];
        let began = Instant::now();
        let is_up = || members.iter().all(|member| member.running.stopped().is_none());
        while slow.calls.load(Ordering::Relaxed) < CALLS && is_up() && began.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for (node, member) in members.iter().enumerate() {
        let status = member.running.status();
        assert_eq!(member.running.stopped(), None, "node {node} over {carrier:?}");
        assert_eq!(
            (status.view, status.members),
            (1, vec![0, 1, 2]),
            "node {node} over {carrier:?}"
        );
    }
    for member in &members {
        assert!(member.running.settle(LONG));
    }
    let told = |member: &Member| member.delivered.lock().expect("nobody panics").clone();
    let first = told(&members[0]);
    assert!(first.len() as u64 > CALLS);
    assert!(members.iter().all(|member| told(member) == first), "one order over {carrier:?}");
}

#[test]
fn member_with_slow_upcalls_stays_over_shared_memory() {
    run(Carrier::SharedMemory, true);
}

#[test]
fn member_with_slow_unbatched_upcalls_stays_in_group() {
    run(Carrier::SharedMemory, false);
}

#[test]
fn member_with_slow_upcalls_stays_over_tcp() {
    run(Carrier::Tcp, true);
}
