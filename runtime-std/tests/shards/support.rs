//! Overlays whose processes are threads of the test.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tramontane_core::ids::ClientNumber;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::rdma::{self, DeviceOptions};
use tramontane_runtime::shards::{
    Answers, Client, Delivered, Description, Destinations, MessageId, ReplicaId, ReplicaState,
    Replicas, Running, SendError, ShardApplication, StartError, StartOptions, start,
};
use tramontane_verbs::fake::{Clock, DeviceName, Network, Profile};

use crate::free_addresses::free_addresses;

/// A time limit longer than any test takes.
pub const LONG: Duration = Duration::from_secs(60);

/// Everything that one replica has received, including restored state.
pub type ReplicaLog = Arc<Mutex<Vec<(MessageId, u64, Vec<u8>)>>>;

/// An application that keeps everything.
#[derive(Clone, Default)]
pub struct KeepingApplication(pub ReplicaLog);

impl KeepingApplication {
    pub fn payloads(&self) -> Vec<String> {
        let log = self.0.lock().expect("no panic");
        log.iter().map(|(_, _, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    pub fn len(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }
}

impl ShardApplication for KeepingApplication {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        let kept = (message.id, message.destinations.0, message.payload.to_vec());
        self.0.lock().expect("no panic").push(kept);
        u8::try_from(message.payload.len() % 251).expect("less")
    }

    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        let mut bytes = Vec::new();
        for (id, destinations, payload) in self.0.lock().expect("no panic").iter() {
            bytes.extend(id.client.0.to_le_bytes());
            bytes.extend(id.incarnation.to_le_bytes());
            bytes.extend(id.number.to_le_bytes());
            bytes.extend(destinations.to_le_bytes());
            bytes.extend(u32::try_from(payload.len()).expect("short").to_le_bytes());
            bytes.extend(payload);
        }
        Box::new(io::Cursor::new(bytes))
    }

    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        let mut log = Vec::new();
        loop {
            let mut head = [0; 26];
            match state.read_exact(&mut head) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                read => read?,
            }
            let of = |from: usize, to: usize| {
                head[from..to].iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte))
            };
            let client = u16::try_from(of(0, 2)).expect("two bytes");
            let incarnation = u32::try_from(of(2, 6)).expect("four bytes");
            let id = MessageId { client: ClientNumber(client), incarnation, number: of(6, 14) };
            let mut payload = vec![0; usize::try_from(of(22, 26)).expect("four bytes")];
            state.read_exact(&mut payload)?;
            log.push((id, of(14, 22), payload));
        }
        *self.0.lock().expect("no panic") = log;
        Ok(())
    }
}

/// Returns an overlay of groups of three replicas, in a separate folder or at free ports.
pub fn overlay(carrier: Carrier, parents: &[Option<usize>], folder: &Path) -> Description {
    let mut description = Description::local("bank", parents, 3);
    description.shm_dir = Some(folder.to_owned());
    description.heartbeat_ms = 10;
    description.failure_timeout_ms = 500;
    description.fabric = carrier;
    if carrier == Carrier::Verbs {
        description.rdma = device();
    }
    if carrier != Carrier::SharedMemory {
        for group in &mut description.groups {
            let addresses = free_addresses(group.replicas.count()).expect("free ports");
            group.replicas = Replicas::Addresses(addresses.into_iter().map(Into::into).collect());
        }
    }
    description
}

/// Returns an overlay whose entries refer to all messages.
pub fn overlay_by_reference(
    carrier: Carrier,
    parents: &[Option<usize>],
    folder: &Path,
) -> Description {
    Description { references_from: Some(1), ..overlay(carrier, parents, folder) }
}

/// Returns an overlay whose replicas save their logs.
pub fn durable_overlay(carrier: Carrier, parents: &[Option<usize>], folder: &Path) -> Description {
    Description { durable: true, ..overlay(carrier, parents, folder) }
}

/// Returns the data folder of a durable overlay's replicas.
pub fn data_folder(description: &Description) -> Option<PathBuf> {
    let folder = description.shm_dir.as_ref().filter(|_| description.durable);
    folder.map(|folder| folder.join("data"))
}

/// Returns the machine's RDMA device, or a fake one of this process that all its threads open.
fn device() -> DeviceOptions {
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

/// A running replica, with what it has received.
pub struct Started {
    pub id: ReplicaId,
    pub keeper: KeepingApplication,
    pub running: Running,
}

/// Starts one replica.
pub fn start_one(description: &Description, id: ReplicaId) -> Result<Started, StartError> {
    let keeper = KeepingApplication::default();
    let mut options = StartOptions::default();
    options.time_limit = LONG;
    options.data = data_folder(description);
    options.data_keep_bytes = 64 << 10;
    let running = start(description, id, options, keeper.clone())?;
    Ok(Started { id, keeper, running })
}

/// Starts these replicas at the same time.
pub fn start_these(
    description: &Description,
    replicas: impl IntoIterator<Item = ReplicaId>,
) -> Vec<Started> {
    std::thread::scope(|scope| {
        let started: Vec<_> = replicas
            .into_iter()
            .map(|id| scope.spawn(move || start_one(description, id).expect("it starts")))
            .collect();
        started.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Sends `count` messages to all groups, and waits for their answers.
pub fn send(client: &mut Client, to: Destinations, from: usize, count: usize) {
    let mut answered = 0;
    for number in from..from + count {
        let payload = format!("message {number}");
        while client.multicast(to, payload.as_bytes(), Answers::OneOfEach) == Err(SendError::Full) {
            answered += usize::from(client.wait(LONG).expect("it goes on").is_some());
        }
    }
    while answered < count {
        client.wait(LONG).expect("it goes on").expect("it is answered");
        answered += 1;
    }
}

/// Returns the index of the replica that leads a group.
pub fn leader(started: &[Started], group: u16) -> usize {
    let mut found = None;
    wait_until("one leads", || {
        let leads = |one: &Started| {
            one.id.group.0 == group && one.running.status().state == ReplicaState::Leading
        };
        found = started.iter().position(leads);
        found.is_some()
    });
    found.expect("it was found")
}

/// Waits until the condition holds.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
