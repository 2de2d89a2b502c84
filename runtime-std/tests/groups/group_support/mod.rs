//! A group whose members are threads of this process, each with an application that records
//! everything it receives.

#![allow(dead_code, reason = "each test program uses its own part")]

pub mod subgroups;

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tramontane_core::ids::SubgroupId;
use tramontane_log::{Log, SystemFolder};
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Application, Description, Fate, Forming, LargeUnsent, Logged, Messages, Receipt, Running,
    Sender, StartOptions, Unsent, ViewChanged, start,
};
use tramontane_runtime::member::{Settings, Stopped};
use tramontane_runtime::rdma;
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::Root;
use tramontane_verbs::fake::{Clock, DeviceName, Network, Profile};

/// Maximum time for any operation, even on emulated processors: only a hang takes as long.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The time after which a silent member counts as dead in a [`Crowd::impatient`] crowd.
pub const IMPATIENCE: Duration = Duration::from_secs(3);

const GROUP: SubgroupId = SubgroupId(0);

/// The variable that requests groups over a fake device if there is no RDMA device; `.ci/full` sets
/// it. The fake device takes as long as the other fabrics together.
const OVER_FAKE: &str = "TRAMONTANE_GROUPS_OVER_FAKE_RDMA";

/// Returns the fabrics of crowds, including RDMA if there is a device or a fake one is requested.
pub fn carriers() -> Vec<Carrier> {
    let has_device = rdma::choose(&DeviceOptions::default()).is_ok();
    if has_device {
        println!("over RDMA too");
    }
    let mut all = vec![Carrier::SharedMemory, Carrier::Tcp];
    if has_device || std::env::var_os(OVER_FAKE).is_some() {
        all.push(Carrier::Verbs);
    }
    all
}

/// Returns the fabrics for members that are separate processes. RDMA over a fake device is
/// excluded, because such a device belongs to one process.
pub fn carriers_of_processes() -> Vec<Carrier> {
    let mut all = carriers();
    if device() != DeviceOptions::default() {
        all.retain(|carrier| *carrier != Carrier::Verbs);
    }
    all
}

/// Returns the machine's RDMA device, or a fake one of this process that all its members open.
pub fn device() -> DeviceOptions {
    static FAKE: OnceLock<(Network, DeviceName)> = OnceLock::new();
    if rdma::choose(&DeviceOptions::default()).is_ok() {
        return DeviceOptions::default();
    }
    let (_, name) = FAKE.get_or_init(|| {
        let network = Network::new(1, Clock::Real);
        let name = network.add_device(Profile::soft_roce());
        (network, name)
    });
    DeviceOptions { device: Some(name.as_str().to_owned()), ..DeviceOptions::default() }
}

/// Returns the content of a node's message with the given number.
pub fn message(node: u32, number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&node.to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Fills a longer message of a node with its name, and with bytes that no other message has at the
/// same place.
pub fn fill_large(bytes: &mut [u8], node: u32, number: u64) {
    bytes[..16].copy_from_slice(&message(node, number));
    for (place, byte) in (0_u64..).zip(bytes[16..].chunks_mut(8)) {
        let value =
            (place ^ (number << 40) ^ (u64::from(node) << 56)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        byte.copy_from_slice(&value.to_le_bytes()[..byte.len()]);
    }
}

/// Sends a longer message, waiting for room for at most `patience`.
pub fn send_large(
    sender: &mut Sender,
    node: u32,
    number: u64,
    bytes: usize,
    patience: Duration,
) -> Result<Receipt, LargeUnsent> {
    let mut buffer = sender.buffer(bytes).map_err(|why| LargeUnsent { why, buffer: None })?;
    fill_large(&mut buffer[..bytes], node, number);
    sender.send_large(buffer, bytes, patience)
}

fn assert_whole(bytes: &[u8], (node, number): (u32, u64)) {
    let mut expected = vec![0; bytes.len()];
    fill_large(&mut expected, node, number);
    assert!(bytes == expected, "message {number} of {node}, of {} bytes, has others", bytes.len());
}

fn parsed(bytes: &[u8]) -> (u32, u64) {
    let node = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
    (node, u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")))
}

/// Everything that an application has received.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The sender and number of each message, starting with those that came with the state.
    pub messages: Vec<(u32, u64)>,
    /// The view in which each message was delivered, or 0 for messages that came with the state.
    pub views_of: Vec<u64>,
    pub views: Vec<(u64, Vec<u32>)>,
}

/// The application: what it has received, and the number of calls with messages that have begun.
struct RecordingApplication(Arc<Mutex<Told>>, Arc<AtomicU64>);

impl Application for RecordingApplication {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        self.1.fetch_add(1, Ordering::Relaxed);
        let mut told = self.0.lock().expect("nobody panics");
        for message in messages {
            let said = parsed(message.payload);
            assert_eq!(said.0, message.sender.get(), "the sender is the one that it says");
            assert_whole(message.payload, said);
            told.messages.push(said);
            told.views_of.push(message.view.0);
        }
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        let members = change.view.members.iter().map(|node| node.get()).collect();
        self.0.lock().expect("nobody panics").views.push((change.view.id.0, members));
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        let told = self.0.lock().expect("nobody panics");
        let bytes: Vec<u8> =
            told.messages.iter().flat_map(|(node, number)| message(*node, *number)).collect();
        Box::new(Cursor::new(bytes))
    }

    fn restore(&mut self, _: SubgroupId, state: &mut dyn Read) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        let mut told = self.0.lock().expect("nobody panics");
        told.messages = bytes.chunks(16).map(parsed).collect();
        told.views_of = vec![0; told.messages.len()];
        Ok(())
    }
}

/// A group, and what its members have received, including dead ones.
pub struct Crowd {
    description: Description,
    root: TempDir,
    /// The folder of the nodes' logs, if the subgroup is logged.
    data: Option<TempDir>,
    listeners: BTreeMap<u32, TcpListener>,
    running: BTreeMap<u32, Running>,
    pub told: BTreeMap<u32, Arc<Mutex<Told>>>,
    calls: BTreeMap<u32, Arc<AtomicU64>>,
}

impl Crowd {
    pub fn of(carrier: Carrier, nodes: u32) -> Self {
        // Shows the members' loss reports when a test fails. Only the first crowd in a program
        // installs the subscriber.
        let _ = tracing_subscriber::fmt()
            .with_test_writer()
            .with_max_level(tracing::Level::INFO)
            .try_init();
        let mut description = Description::local("crowd", nodes, 8, 16);
        description.heartbeat_ms = 10;
        description.failure_timeout_ms = 2_000;
        let mut listeners = BTreeMap::new();
        if carrier != Carrier::SharedMemory {
            description.fabric = carrier;
            for node in &mut description.nodes {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
                let address: SocketAddr = listener.local_addr().expect("an address");
                node.address = Some(address.into());
                listeners.insert(node.id, listener);
            }
        }
        let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let (running, told, calls) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { description, root, data: None, listeners, running, told, calls }
    }

    /// Creates a crowd with large messages of up to `large_max` bytes.
    pub fn with_large(carrier: Carrier, nodes: u32, large_max: u64) -> Self {
        let mut crowd = Self::of(carrier, nodes);
        crowd.description.subgroups[0].large_max = large_max;
        // Members do not stall here, and the end of a member is noticed at once, so no member may
        // be considered dead, even on a busy machine.
        crowd.description.failure_timeout_ms = 10_000;
        crowd
    }

    /// Makes silent members count as dead after a short time.
    pub fn impatient(mut self) -> Self {
        self.description.failure_timeout_ms =
            u64::try_from(IMPATIENCE.as_millis()).expect("it is small");
        self
    }

    /// Makes silent members count as dead only after a long time, because a group of many members
    /// on few processors is silent while it forms.
    pub fn patient(mut self) -> Self {
        self.description.failure_timeout_ms = 10_000;
        self
    }

    /// Makes the subgroup unordered.
    pub fn unordered(mut self) -> Self {
        self.description.subgroups[0].unordered = true;
        self
    }

    /// Makes node 0 the only sender, whose messages the members pass on.
    pub fn relayed(mut self) -> Self {
        let subgroup = &mut self.description.subgroups[0];
        (subgroup.senders, subgroup.relayed) = (Some(vec![0]), true);
        subgroup.window = 32;
        self
    }

    /// Makes senders pause that have sent nothing for this time.
    pub fn pausing(mut self, after_ms: u64) -> Self {
        self.description.subgroups[0].pause_senders_after_ms = after_ms;
        self
    }

    /// Puts each node in a rack.
    pub fn in_racks(mut self, racks: &[&str]) -> Self {
        for (node, rack) in self.description.nodes.iter_mut().zip(racks) {
            node.rack = Some((*rack).to_owned());
        }
        self
    }

    /// Makes these nodes the only senders.
    pub fn with_senders(mut self, senders: &[u32]) -> Self {
        self.description.subgroups[0].senders = Some(senders.to_vec());
        self
    }

    /// Makes each member log what it receives, in its own folder.
    pub fn logged(mut self) -> Self {
        self.description.subgroups[0].logged = true;
        self.data = Some(tempfile::tempdir().expect("a folder"));
        self
    }

    /// Returns the folder of a node's logs.
    pub fn data_of(&self, node: u32) -> Option<PathBuf> {
        self.data.as_ref().map(|data| data.path().join(format!("data-{node}")))
    }

    /// Returns the records of a node's log: the sender and number of each message.
    pub fn logged_at(&self, node: u32) -> Vec<(u32, u64)> {
        let folder = self.data_of(node).expect("it is logged").join("crowd");
        let layer = SystemFolder::read_only(folder).expect("a log");
        let (log, recovery) = Log::open_to_read(layer, None).expect("it is whole");
        assert_eq!((recovery.is_torn, recovery.damage.len()), (false, 0), "{recovery:?}");
        let mut records = log.records(log.first()).expect("all of them");
        let mut logged = Vec::new();
        while let Some(record) = records.read_next() {
            let record = record.expect("it is sound");
            let said = parsed(record.bytes);
            assert_eq!(said.0, record.sender.get(), "the log has who sent it");
            logged.push(said);
        }
        logged
    }

    pub fn running(&self, node: u32) -> &Running {
        &self.running[&node]
    }

    pub fn logged_sender(&self, node: u32) -> Sender<Logged> {
        self.sender(node).logged().expect("the subgroup is logged")
    }

    /// Starts a node, which is in a view when this returns.
    pub fn start(&mut self, node: u32) {
        self.start_all(&[node]);
    }

    /// Starts all these nodes at the same time.
    pub fn start_all(&mut self, nodes: &[u32]) {
        let started: Vec<(u32, RecordingApplication, Running)> = std::thread::scope(|scope| {
            let starting: Vec<_> = nodes
                .iter()
                .map(|node| {
                    let description = self.description.clone();
                    let root = Root::under(self.root.path());
                    let data = self.data_of(*node);
                    let listener = self
                        .listeners
                        .get(node)
                        .map(|listener| listener.try_clone().expect("a handle"));
                    scope.spawn(move || {
                        let ledger = RecordingApplication(Arc::default(), Arc::default());
                        let cancel = AtomicBool::new(false);
                        let options = StartOptions {
                            node: *node,
                            root,
                            device: device(),
                            listener: listener
                                .map(|listener| listener.try_into().expect("it listens")),
                            time_limit: PATIENCE,
                            cancel: &cancel,
                            settings: Settings::default(),
                            forming: Forming { new_group: true, ..Forming::default() },
                            data,
                            ..StartOptions::new(*node)
                        };
                        let application =
                            RecordingApplication(Arc::clone(&ledger.0), Arc::clone(&ledger.1));
                        let running = start(description, options, application);
                        (
                            *node,
                            ledger,
                            running.unwrap_or_else(|error| panic!("node {node}: {error}")),
                        )
                    })
                })
                .collect();
            starting.into_iter().map(|starting| starting.join().expect("it starts")).collect()
        });
        for (node, RecordingApplication(told, calls), running) in started {
            self.told.insert(node, told);
            self.calls.insert(node, calls);
            self.running.insert(node, running);
        }
    }

    pub fn sender(&self, node: u32) -> Sender {
        self.running[&node].sender_of(GROUP).expect("all send")
    }

    pub fn send(&self, node: u32, number: u64) -> Receipt {
        self.sender(node).send(&message(node, number), PATIENCE).expect("it is sent")
    }

    pub fn send_large(&self, node: u32, number: u64, bytes: usize) -> Receipt {
        send_large(&mut self.sender(node), node, number, bytes, PATIENCE).expect("it is sent")
    }

    /// Waits until a message counts as delivered, which is a moment after the application has
    /// received it.
    pub fn await_fate(&self, receipt: &Receipt) {
        self.await_that("it is delivered", || receipt.fate() == Fate::Delivered);
    }

    /// Ends a member without notice.
    pub fn kill(&mut self, node: u32) {
        drop(self.running.remove(&node).expect("it runs"));
    }

    /// Ends a member without notice, and returns its undelivered messages.
    pub fn close(&mut self, node: u32) -> (Stopped, Vec<Unsent>) {
        self.running.remove(&node).expect("it runs").close()
    }

    pub fn await_sent(&self, node: u32, count: u64) {
        self.await_that("it is sent", || self.running[&node].status().sent >= count);
    }

    pub fn leave(&mut self, node: u32) {
        let running = self.running.remove(&node).expect("it runs");
        let unsent = running.leave(PATIENCE).expect("it leaves");
        assert!(unsent.is_empty(), "{unsent:?}");
    }

    /// Returns the number of calls with messages to an application.
    pub fn calls(&self, node: u32) -> u64 {
        self.calls[&node].load(Ordering::Relaxed)
    }

    /// Waits until an application has been called `calls` times, whether or not the last call has
    /// returned.
    pub fn await_call(&self, node: u32, calls: u64) {
        self.await_that("it is called", || self.calls(node) >= calls);
    }

    pub fn members_at(&self, node: u32) -> Vec<u32> {
        self.told[&node]
            .lock()
            .expect("nobody panics")
            .views
            .last()
            .expect("it is in a view")
            .1
            .clone()
    }

    pub fn messages_at(&self, node: u32) -> Vec<(u32, u64)> {
        self.told[&node].lock().expect("nobody panics").messages.clone()
    }

    pub fn await_that(&self, what: &str, is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            let statuses: Vec<_> = self
                .running
                .values()
                .map(|running| (running.status(), running.stopped()))
                .collect();
            assert!(started.elapsed() < PATIENCE, "{what}: {statuses:#?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the view in which a member delivered a message.
    pub fn view_of(&self, at: u32, message: (u32, u64)) -> Option<u64> {
        let told = self.told[&at].lock().expect("nobody panics");
        let index = told.messages.iter().position(|one| *one == message)?;
        told.views_of.get(index).copied()
    }

    pub fn await_delivered(&self, nodes: &[u32], count: usize) {
        for node in nodes {
            self.await_that("all is delivered", || self.messages_at(*node).len() >= count);
        }
    }

    /// Waits until these nodes have delivered the first `count` messages from each of these
    /// senders, each once and in order.
    pub fn await_all_of(&self, nodes: &[u32], senders: &[u32], count: u64) {
        for node in nodes {
            for sender in senders {
                let what = format!("{node} delivers all of {sender}");
                let all: Vec<u64> = (0..count).collect();
                let of = || -> Vec<u64> {
                    let messages = self.messages_at(*node);
                    messages
                        .iter()
                        .filter(|(from, _)| from == sender)
                        .map(|(_, number)| *number)
                        .collect()
                };
                self.await_that(&what, || of().len() >= all.len());
                assert_eq!(of(), all, "at {node}, of {sender}");
            }
        }
    }

    pub fn await_view(&self, node: u32, view: u64) {
        self.await_that("the view comes", || self.running[&node].status().view >= view);
    }

    /// Waits until all of `nodes` are in a view with these members.
    pub fn await_members(&self, nodes: &[u32], members: &[u32]) {
        for node in nodes {
            self.await_that("the members", || self.running[node].status().members == members);
        }
    }

    pub fn await_stopped(&self, node: u32, is_so: impl Fn(&Stopped) -> bool) {
        self.await_that("it stops", || self.running[&node].stopped().is_some());
        let stopped = self.running[&node].stopped().expect("it stopped");
        assert!(is_so(&stopped), "{stopped}");
    }

    pub fn assert_same(&self, nodes: &[u32]) {
        let first = self.messages_at(nodes[0]);
        for node in nodes {
            assert_eq!(self.messages_at(*node), first, "at {node}");
        }
    }

    /// Like [`Crowd::assert_same`], except that a member that has joined received the earlier
    /// messages with its state.
    pub fn assert_same_with_state(&self, nodes: &[u32]) {
        self.assert_same(nodes);
    }
}
