//! Tests of a fake device's guarantees and freedoms, in virtual time.

mod connections;
mod denials;
mod faults;
mod freedoms;
mod sequence;

use std::sync::Arc;

use super::{Clock, DeviceName, Network, Profile};
use crate::adapter::{
    Access, BATCH, Completion, CompletionQueue, Context, MemoryRegion, Operation, Pages,
    ProtectionDomain, QueuePair, QueuePairLimits, Route, SendBuffers, SendList, SendTimes, Target,
    open,
};

const MS: u64 = 1_000_000;

/// Size of each end's memory in bytes.
const BYTES: usize = 8192;

const FULL: Access = Access::all();

const LIMITS: QueuePairLimits =
    QueuePairLimits { sends_max: 64, receives_max: 16, inline_bytes_max: 128 };

/// Three retransmissions, each after 4.2 ms.
const TIMES: SendTimes =
    SendTimes { timeout_exponent: 10, retries: 3, first_packet: 100, reads_max: 4 };

/// One end of a connection. Fields are dropped in this order.
struct FakeEnd {
    pair: QueuePair,
    region: Arc<MemoryRegion>,
    queue: CompletionQueue,
    domain: ProtectionDomain,
    context: Context,
    buffers: SendBuffers,
}

impl FakeEnd {
    fn new(device: &DeviceName) -> Self {
        Self::with(device, LIMITS, 256)
    }

    fn with(device: &DeviceName, limits: QueuePairLimits, entries: u32) -> Self {
        let context = open(device.as_str()).expect("it is there");
        let domain = ProtectionDomain::new(&context).expect("a domain");
        let queue = CompletionQueue::new(&context, entries).expect("a queue");
        let pages = Arc::new(Pages::new(BYTES).expect("memory"));
        let region = MemoryRegion::new(&domain, &pages, BYTES, FULL).expect("a region");
        let region = Arc::new(region);
        let pair = QueuePair::new(&domain, &queue, limits).expect("a queue pair");
        let buffers = SendBuffers::new(&context);
        Self { pair, region, queue, domain, context, buffers }
    }

    fn route_to(&self, other: &Self, first_packet: u32) -> Route {
        let port = other.context.port(1).expect("a port");
        let own = self.context.port(1).expect("a port");
        let is_ethernet = own.link_layer == 2;
        let index = u8::try_from(port.gids - 1).expect("few");
        Route {
            port: 1,
            partition_index: 0,
            gid_index: index,
            mtu: port.mtu_active.min(own.mtu_active),
            remote_gid: other.context.gid(1, index).expect("an address"),
            remote_lid: port.lid,
            remote_number: other.pair.number(),
            remote_packet: first_packet,
            is_global: is_ethernet,
            service: crate::devices::Service::default(),
            reads_max: 4,
        }
    }

    fn connect(&mut self, other: &Self, access: Access, times: &SendTimes) {
        let route = self.route_to(other, times.first_packet);
        self.pair.initialise(1, 0, access).expect("from RESET");
        self.pair.connect(&route).expect("from INIT");
        self.pair.start(times).expect("from RTR");
    }

    fn target(&self, offset: usize) -> Target {
        let offset = u64::try_from(offset).expect("small");
        Target { address: self.region.address() + offset, key: self.region.remote_key() }
    }

    fn fill(&self, offset: usize, bytes: &[u8]) {
        self.region.pages().writer().apply(offset, bytes).expect("inside");
    }

    fn look(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.region.pages().row().read(offset, &mut bytes).expect("inside");
        bytes
    }

    /// Posts one signalled request.
    fn post(
        &mut self,
        name: u64,
        operation: Operation,
        bytes: Option<(usize, usize)>,
    ) -> std::io::Result<()> {
        self.post_inline(name, operation, bytes, false)
    }

    fn post_inline(
        &mut self,
        name: u64,
        operation: Operation,
        bytes: Option<(usize, usize)>,
        inline: bool,
    ) -> std::io::Result<()> {
        let mut list = SendList::new(&mut self.buffers);
        let range = bytes.map(|(offset, length)| (&*self.region, offset, length));
        assert!(list.push(name, operation, range, inline), "inside");
        list.signal_last();
        self.pair.post(list)
    }

    /// Returns the completions by name and status.
    fn completed(&self) -> Vec<(u64, u32)> {
        self.completions().iter().map(|one| (one.name, one.status)).collect()
    }

    fn completions(&self) -> Vec<Completion> {
        let mut all = Vec::new();
        let mut batch = [Completion::default(); BATCH];
        loop {
            let taken = self.queue.take(&mut batch).expect("the queue works");
            all.extend_from_slice(&batch[..taken]);
            if taken < BATCH {
                return all;
            }
        }
    }
}

/// Two devices of one kind, and a connection between them.
struct Two {
    network: Network,
    devices: [DeviceName; 2],
    a: FakeEnd,
    b: FakeEnd,
}

impl Two {
    fn new(profile: Profile) -> Self {
        Self::seeded(7, profile)
    }

    fn seeded(seed: u64, profile: Profile) -> Self {
        let mut two = Self::unconnected(seed, profile);
        two.connect(FULL);
        two
    }

    fn unconnected(seed: u64, profile: Profile) -> Self {
        let network = Network::new(seed, Clock::Virtual);
        let devices = [network.add_device(profile.clone()), network.add_device(profile)];
        let [a, b] = [FakeEnd::new(&devices[0]), FakeEnd::new(&devices[1])];
        Self { network, devices, a, b }
    }

    /// Connects both ends with these rights.
    fn connect(&mut self, access: Access) {
        self.a.connect(&self.b, access, &TIMES);
        self.b.connect(&self.a, access, &TIMES);
    }

    fn run(&self, ns: u64) {
        self.network.run_until(self.network.now_ns() + ns);
    }

    /// Writes from A's memory to the same offset in B's.
    fn write(&mut self, name: u64, offset: usize, length: usize) {
        let target = self.b.target(offset);
        self.a.post(name, Operation::Write(target), Some((offset, length))).expect("room");
    }
}
