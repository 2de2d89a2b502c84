//! A group with two subgroups, "all" and "two", whose members are threads of this process. Its
//! applications can be blocked.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tramontane_core::ids::SubgroupId;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Application, Description, Forming, Messages, Running, StartError, StartOptions,
    SubgroupDescription, ViewChanged, start,
};
use tramontane_runtime::member::Settings;
use tramontane_runtime::shared_memory::Root;

/// Maximum time for any operation, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The subgroup of all nodes.
pub const ALL: SubgroupId = SubgroupId(0);

/// The subgroup of some nodes.
pub const TWO: SubgroupId = SubgroupId(1);

/// Everything that one application has received, and the flags that block it.
#[derive(Debug, Default)]
pub struct Told {
    /// The sender and number of each message, by subgroup.
    messages: Mutex<BTreeMap<u16, Vec<(u32, u64)>>>,
    views: Mutex<Vec<Vec<u32>>>,
    restored: [AtomicU64; 2],
    /// While this is true, the application does not restore the state of the first subgroup.
    pub holds_state: AtomicBool,
    /// While this is true, the application does not return from a delivery.
    pub holds_delivery: AtomicBool,
}

impl Told {
    pub fn messages(&self, subgroup: SubgroupId) -> Vec<(u32, u64)> {
        self.messages.lock().expect("nobody panics").get(&subgroup.0).cloned().unwrap_or_default()
    }

    /// Returns the members of each view, in order.
    pub fn views(&self) -> Vec<Vec<u32>> {
        self.views.lock().expect("nobody panics").clone()
    }

    /// Returns how often the application has restored the state of a subgroup.
    pub fn restored(&self, subgroup: SubgroupId) -> u64 {
        self.restored[subgroup.index()].load(Ordering::Relaxed)
    }
}

fn await_false(flag: &AtomicBool) {
    while flag.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn bytes_of((node, number): (u32, u64)) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&node.to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn parsed(bytes: &[u8]) -> (u32, u64) {
    let node = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
    (node, u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")))
}

struct Teller(Arc<Told>);

impl Application for Teller {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let subgroup = messages.subgroup().0;
        for message in messages {
            let mut told = self.0.messages.lock().expect("nobody panics");
            told.entry(subgroup).or_default().push(parsed(message.payload));
        }
        await_false(&self.0.holds_delivery);
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        let members = change.view.members.iter().map(|node| node.get()).collect();
        self.0.views.lock().expect("nobody panics").push(members);
    }

    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        let bytes: Vec<u8> = self.0.messages(subgroup).into_iter().flat_map(bytes_of).collect();
        Box::new(Cursor::new(bytes))
    }

    fn restore(&mut self, subgroup: SubgroupId, state: &mut dyn Read) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        let messages = bytes.chunks(16).map(parsed).collect();
        self.0.messages.lock().expect("nobody panics").insert(subgroup.0, messages);
        self.0.restored[subgroup.index()].fetch_add(1, Ordering::Relaxed);
        if subgroup == ALL {
            await_false(&self.0.holds_state);
        }
        Ok(())
    }
}

/// A group, and what its members have received, including dead ones.
pub struct Nodes {
    pub description: Description,
    root: TempDir,
    listeners: BTreeMap<u32, TcpListener>,
    running: Mutex<BTreeMap<u32, Running>>,
    told: Mutex<BTreeMap<u32, Arc<Told>>>,
}

impl Nodes {
    /// Creates a group of `nodes` nodes, with the given initial nodes, and the nodes that belong to
    /// "two".
    pub fn of(carrier: Carrier, nodes: u32, initial: &[u32], two: &[u32]) -> Self {
        // Displays the members' reports of losses with a failing test. The first group of a program
        // sets this up.
        let filter = tracing_subscriber::EnvFilter::try_from_default_env()
            .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
        let _ = tracing_subscriber::fmt().with_test_writer().with_env_filter(filter).try_init();
        let mut description = Description::local("subgroups", nodes, 8, 16);
        description.initial = initial.to_vec();
        description.heartbeat_ms = 10;
        description.failure_timeout_ms = 10_000;
        let members = || Some(two.to_vec());
        let named = SubgroupDescription::named("two");
        let (window, message_max) = (8, 16);
        let two = SubgroupDescription {
            members: members(),
            senders: members(),
            window,
            message_max,
            ..named
        };
        description.subgroups.push(two);
        let mut listeners = BTreeMap::new();
        if carrier != Carrier::SharedMemory {
            description.fabric = carrier;
            for node in &mut description.nodes {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
                node.address = Some(listener.local_addr().expect("an address").into());
                listeners.insert(node.id, listener);
            }
        }
        let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
        Self { description, root, listeners, running: Mutex::default(), told: Mutex::default() }
    }

    /// Returns a new record for a node, which is used from the node's next start.
    pub fn prepare(&self, node: u32) -> Arc<Told> {
        let told = Arc::<Told>::default();
        self.told.lock().expect("nobody panics").insert(node, Arc::clone(&told));
        told
    }

    pub fn told(&self, node: u32) -> Arc<Told> {
        Arc::clone(&self.told.lock().expect("nobody panics")[&node])
    }

    /// Starts a node, which is in a view when this returns.
    pub fn start(&self, node: u32) {
        self.try_start(node).unwrap_or_else(|error| panic!("node {node}: {error}"));
    }

    /// Like [`Nodes::start`], for a node that may not be admitted.
    pub fn try_start(&self, node: u32) -> Result<(), StartError> {
        let known = self.told.lock().expect("nobody panics").get(&node).cloned();
        let told = known.unwrap_or_else(|| self.prepare(node));
        let never = AtomicBool::new(false);
        let listener =
            self.listeners.get(&node).map(|listener| listener.try_clone().expect("a handle"));
        let options = StartOptions {
            node,
            root: Root::under(self.root.path()),
            device: super::device(),
            listener: listener.map(|listener| listener.try_into().expect("it listens")),
            time_limit: PATIENCE,
            cancel: &never,
            settings: Settings::default(),
            forming: Forming { new_group: true, ..Forming::default() },
            ..StartOptions::new(node)
        };
        let running = start(self.description.clone(), options, Teller(told))?;
        self.running.lock().expect("nobody panics").insert(node, running);
        Ok(())
    }

    /// Starts all these nodes at the same time.
    pub fn start_all(&self, nodes: &[u32]) {
        std::thread::scope(|scope| {
            for node in nodes {
                scope.spawn(|| self.start(*node));
            }
        });
    }

    pub fn send(&self, node: u32, subgroup: SubgroupId, number: u64) {
        let sender = self.running.lock().expect("nobody panics")[&node].sender_of(subgroup);
        let sent = sender.expect("it sends there").send(&bytes_of((node, number)), PATIENCE);
        sent.expect("it is sent");
    }

    /// Ends a member without notice.
    pub fn kill(&self, node: u32) {
        let running = self.running.lock().expect("nobody panics").remove(&node);
        drop(running.expect("it runs"));
    }

    /// Lets a member leave, and forgets what it has received.
    pub fn leave(&self, node: u32) {
        let running = self.running.lock().expect("nobody panics").remove(&node);
        let unsent = running.expect("it runs").leave(PATIENCE);
        let unsent =
            unsent.unwrap_or_else(|stopped| panic!("node {node} does not leave: {stopped}"));
        assert!(unsent.is_empty(), "{unsent:?}");
        self.told.lock().expect("nobody panics").remove(&node);
    }

    #[track_caller]
    pub fn await_that(&self, what: &str, is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < PATIENCE, "{what}: {:#?}", self.statuses());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn statuses(&self) -> Vec<String> {
        let running = self.running.lock().expect("nobody panics");
        let statuses = running.iter().map(|(node, running)| {
            format!("node {node}: {:?}, {:?}", running.status(), running.stopped())
        });
        statuses.collect()
    }

    /// Returns whether a node has been started, and has neither left nor been killed.
    pub fn is_up(&self, node: u32) -> bool {
        self.running.lock().expect("nobody panics").contains_key(&node)
    }

    /// Returns the members as a node sees them, in rank order. Empty if the node is not a member.
    pub fn members(&self, at: u32) -> Vec<u32> {
        let running = self.running.lock().expect("nobody panics");
        running.get(&at).map(|running| running.status().members).unwrap_or_default()
    }

    /// Returns the nodes that are receiving state from a member.
    pub fn joining(&self, at: u32) -> Vec<u32> {
        let running = self.running.lock().expect("nobody panics");
        running.get(&at).map(|running| running.status().joining).unwrap_or_default()
    }

    /// Waits until all these nodes are in a view with exactly these members.
    #[track_caller]
    pub fn await_members(&self, nodes: &[u32]) {
        for node in nodes {
            self.await_that(&format!("node {node} is with {nodes:?}"), || {
                let mut members = self.members(*node);
                members.sort_unstable();
                members == nodes
            });
        }
    }

    /// Waits until these nodes have exactly these messages of a subgroup.
    #[track_caller]
    pub fn await_messages(&self, nodes: &[u32], subgroup: SubgroupId, messages: &[(u32, u64)]) {
        for node in nodes {
            let told = self.told(*node);
            self.await_that(
                &format!("node {node} has all of {subgroup}: {:?}", told.messages(subgroup)),
                || told.messages(subgroup).len() >= messages.len(),
            );
            assert_eq!(told.messages(subgroup), messages, "node {node}");
        }
    }
}
