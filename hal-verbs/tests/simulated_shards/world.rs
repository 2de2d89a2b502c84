//! The replicas and clients of a run, each on its own device, in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use tramontane_core::fabric::{Fabric as _, ViewRows as _};
use tramontane_core::ids::{ClientNumber, GroupId, NodeId, Rank, Time, ViewId};
use tramontane_core::tram::{
    Answers, Attachment, Client, ClientLinks, ClientOptions, Delivered, Destinations, LOG,
    LentState, LinkId, LinkRole, MessageId, Overlay, Replica, ReplicaId, ReplicaLinks,
    ReplicaOptions, Shape, Stage,
};
use tramontane_fixtures::random::Random;
use tramontane_verbs::fake::{Clock, Counts, Fault, Network};
use tramontane_verbs::{Limits, Site, ViewOptions, WriteOrder};

use super::process::{LentStates, ShardFabric, ShardMachine, ShardMemory, ShardProcess, replicas};
use crate::device::Devices;

/// Heartbeats are several times as far apart as the slowest device needs for a write.
const HEARTBEAT_NS: u64 = 600_000;
pub const SUSPECT_NS: u64 = 10 * HEARTBEAT_NS;

/// A process's role in its overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShardRole {
    Replica(ReplicaId),
    Client(ClientNumber),
}

pub struct ShardWorld<'s> {
    overlay: &'s Overlay,
    pub network: Network,
    parts: Vec<ShardRole>,
    processes: Vec<ShardProcess<'s>>,
    views: u64,
    pub random: Random,
    /// Pairs of processes whose connection was lost, and when they connect again.
    broken: Vec<(usize, usize, u64)>,
    pub delivered: BTreeMap<ReplicaId, Vec<(u64, MessageId)>>,
    pub sent: Vec<(MessageId, Destinations)>,
    pub answered: usize,
    pub complaints: Vec<String>,
    /// Number of campaigns, denied writes and lost connections.
    pub campaigns: u32,
    pub denied: u32,
    pub lost: u32,
}

impl<'s> ShardWorld<'s> {
    pub fn new(
        overlay: &'s Overlay,
        states: &'s mut LentStates,
        devices: &Devices,
        vouches: bool,
        seed: u64,
    ) -> Self {
        let clients =
            (0..overlay.limits().clients).map(|number| ShardRole::Client(ClientNumber(number)));
        let parts: Vec<ShardRole> =
            replicas(overlay).map(ShardRole::Replica).chain(clients).collect();
        let network = Network::new(seed, Clock::Virtual);
        let limits = Limits {
            loss_time: Duration::from_millis(devices.loss_time_ms),
            completion_visible: vouches.then_some(true),
            ..Limits::default()
        };
        let LentStates { replicas: of_replicas, clients: of_clients } = states;
        let (mut of_replicas, mut of_clients) = (of_replicas.iter_mut(), of_clients.iter_mut());
        let mut processes = Vec::new();
        for part in &parts {
            let device = network.add_device(devices.profile.clone());
            let site = Site::open(&device.wanted(), &limits, None).expect("it opens");
            let fabric = ShardFabric { site, views: BTreeMap::new() };
            let capabilities = fabric.capabilities();
            let (machine, bytes, links) = match *part {
                ShardRole::Replica(id) => {
                    let lent = of_replicas.next().expect("as many");
                    let links = lent.0.len();
                    let lent = LentState {
                        links: &mut lent.0,
                        sources: &mut lent.1,
                        replies: &mut lent.2,
                        payload: &mut lent.3,
                    };
                    let options = ReplicaOptions {
                        heartbeat_ns: HEARTBEAT_NS,
                        suspect_ns: SUSPECT_NS,
                        campaign_ns: 2 * SUSPECT_NS,
                        ..ReplicaOptions::default()
                    };
                    let replica = Replica::open(overlay, id, options, capabilities, lent);
                    let replica = Box::new(replica.expect("a replica of the overlay"));
                    (
                        ShardMachine::Replica(replica),
                        Shape::of(overlay, id.group).log_bytes(),
                        links,
                    )
                }
                ShardRole::Client(number) => {
                    let lent = of_clients.next().expect("as many");
                    let links = lent.0.len();
                    let options = ClientOptions { number, incarnation: 1 };
                    let client = Client::open(
                        overlay,
                        options,
                        capabilities,
                        &mut lent.0,
                        &mut lent.1,
                        &mut lent.2,
                        &mut lent.3,
                    );
                    let client = Box::new(client.expect("a client of the overlay"));
                    (ShardMachine::Client(client), 64, links)
                }
            };
            let log = fabric.site.region(LOG, bytes).expect("memory");
            let memory = ShardMemory { log, links: (0..links).map(|_| None).collect() };
            let process = ShardProcess { fabric, memory, machine, device, is_up: true, next_at: 0 };
            processes.push(process);
        }
        let mut world = Self {
            overlay,
            network,
            parts,
            processes,
            views: 0,
            random: Random::stream(seed, "shards"),
            broken: Vec::new(),
            delivered: BTreeMap::new(),
            sent: Vec::new(),
            answered: 0,
            complaints: Vec::new(),
            campaigns: 0,
            denied: 0,
            lost: 0,
        };
        for one in 0..world.parts.len() {
            for other in one + 1..world.parts.len() {
                world.connect(one, other);
            }
        }
        world
    }

    pub fn now(&self) -> u64 {
        self.network.now_ns()
    }

    pub fn counts(&self) -> Counts {
        self.network.counts()
    }

    /// Returns whether lists travel as updates.
    pub fn goes_by_updates(&self) -> bool {
        let site = &self.processes[0].fabric.site;
        site.report().write_order == WriteOrder::ByUpdates
    }

    fn link(&self, of: usize, to: usize) -> Option<LinkId> {
        match (self.parts[of], self.parts[to]) {
            (ShardRole::Replica(id), ShardRole::Replica(other)) => {
                ReplicaLinks::of(self.overlay, id.group).find_replica(self.overlay, id.group, other)
            }
            (ShardRole::Replica(id), ShardRole::Client(number)) => {
                ReplicaLinks::of(self.overlay, id.group).find(LinkRole::Client(number))
            }
            (ShardRole::Client(_), ShardRole::Replica(id)) => {
                ClientLinks::of(self.overlay).find(id)
            }
            (ShardRole::Client(_), ShardRole::Client(_)) => None,
        }
    }

    fn row_bytes(&self, of: usize, to: usize) -> usize {
        let shape = |group: GroupId| Shape::of(self.overlay, group);
        match (self.parts[of], self.parts[to]) {
            (ShardRole::Replica(id), ShardRole::Replica(other)) if id.group == other.group => {
                shape(id.group).peer_row_bytes()
            }
            (ShardRole::Replica(id), ShardRole::Replica(other))
                if self.overlay.parent(other.group) == Some(id.group) =>
            {
                shape(other.group).parent_row_bytes()
            }
            (ShardRole::Replica(id), ShardRole::Replica(_)) => shape(id.group).child_row_bytes(),
            (ShardRole::Replica(id), ShardRole::Client(_)) => {
                shape(id.group).reply_row_bytes(self.overlay.limits().client_window)
            }
            (ShardRole::Client(_), ShardRole::Replica(id)) => shape(id.group).client_row_bytes(),
            (ShardRole::Client(_), ShardRole::Client(_)) => 0,
        }
    }

    /// Opens a new view of two processes.
    fn connect(&mut self, one: usize, other: usize) {
        let (Some(here), Some(there)) = (self.link(one, other), self.link(other, one)) else {
            return;
        };
        self.views += 1;
        let view = ViewId(self.views);
        let members = [one, other].map(|process| NodeId(process as u32 + 1));
        let row_bytes = [self.row_bytes(one, other), self.row_bytes(other, one)];
        for (own, process) in [one, other].into_iter().enumerate() {
            let ShardProcess { fabric, memory, .. } = &mut self.processes[process];
            let options = ViewOptions {
                view,
                own: Rank(own as u16),
                members: &members,
                row_bytes: &row_bytes,
                relayed: &[],
                regions: std::slice::from_ref(&memory.log),
                blocks: false,
            };
            let verbs = fabric.site.view(&options).expect("memory");
            fabric.views.insert(view, verbs);
        }
        let ends = [(one, here), (other, there)];
        let cards = [(one, 1), (other, 0)]
            .map(|(process, peer)| self.verbs(process, view).card_for(Rank(peer)));
        for (own, (process, link)) in ends.into_iter().enumerate() {
            let peer = Rank(1 - own as u16);
            let verbs = self.verbs(process, view);
            assert!(verbs.connect(peer, &cards[1 - own]), "the cards fit");
            verbs.admit(peer);
            let rows = verbs.rows().clone();
            verbs.open(view, &rows.memory()).expect("it opens");
            let now = Time(self.now());
            let ShardProcess { memory, machine, .. } = &mut self.processes[process];
            memory.links[link.index()] = Some((view, rows));
            let attachment = Attachment { view, peer, incarnation: 1 };
            match machine {
                ShardMachine::Replica(replica) => replica.attach(now, link, attachment, memory),
                ShardMachine::Client(client) => client.attach(now, link, attachment, memory),
            }
            .expect("it fits");
        }
    }

    fn verbs(&mut self, process: usize, view: ViewId) -> &mut tramontane_verbs::Verbs {
        self.processes[process].fabric.views.get_mut(&view).expect("an open view")
    }

    fn detach(&mut self, process: usize, link: LinkId) {
        let now = Time(self.now());
        let ShardProcess { fabric, memory, machine, .. } = &mut self.processes[process];
        let Some((view, _)) = memory.links[link.index()].take() else { return };
        match machine {
            ShardMachine::Replica(replica) => replica.detach(now, link),
            ShardMachine::Client(client) => client.detach(link),
        }
        fabric.retire(view);
    }

    /// Lets the next process step, after everything that is due by then.
    pub fn advance(&mut self) {
        let up = self.processes.iter().enumerate().filter(|(_, process)| process.is_up);
        let Some((process, at)) =
            up.map(|(index, one)| (index, one.next_at)).min_by_key(|one| one.1)
        else {
            return;
        };
        self.network.run_until(at.max(self.now()));
        self.reconnect();
        self.step(process);
    }

    fn reconnect(&mut self) {
        let now = self.now();
        let due: Vec<_> = self.broken.extract_if(.., |(.., at)| *at <= now).collect();
        for (one, other, _) in due {
            if !self.processes[one].is_up || !self.processes[other].is_up {
                continue;
            }
            for (process, peer) in [(one, other), (other, one)] {
                if let Some(link) = self.link(process, peer) {
                    self.detach(process, link);
                }
            }
            self.connect(one, other);
        }
    }

    fn step(&mut self, process: usize) {
        let now = Time(self.now());
        let ShardProcess { fabric, memory, machine, device, .. } = &mut self.processes[process];
        let mut taken = Vec::new();
        let stepped = match machine {
            ShardMachine::Replica(replica) => {
                let mut take = |message: &Delivered<'_>| {
                    taken.push((message.place, message.id));
                    1
                };
                replica.step(now, fabric, memory, &mut take)
            }
            ShardMachine::Client(client) => {
                while client.poll().is_some() {
                    self.answered += 1;
                }
                client.step(now, fabric, memory)
            }
        };
        let commands_ns: u64 = self
            .network
            .contexts(device)
            .into_iter()
            .map(|context| self.network.take_command_ns(context))
            .sum();
        let is_idle = match stepped {
            Ok(progress) => {
                self.campaigns += progress.campaigns;
                self.denied += progress.denied;
                progress.is_idle()
            }
            Err(halt) => {
                self.complaints.push(format!("{:?} halts: {halt}", self.parts[process]));
                self.processes[process].is_up = false;
                true
            }
        };
        if let ShardRole::Replica(id) = self.parts[process] {
            self.delivered.entry(id).or_default().extend(taken);
        }
        let pause = if is_idle { (20_000, 200_000) } else { (1_000, 15_000) };
        let pause = self.random.between(pause.0, pause.1);
        self.processes[process].next_at = now.0 + pause + commands_ns;
        self.find_lost(process);
    }

    /// Notes the links that a process has lost, so that they are connected again.
    fn find_lost(&mut self, process: usize) {
        for peer in 0..self.parts.len() {
            let Some(link) = self.link(process, peer) else { continue };
            let ShardProcess { memory, machine, .. } = &self.processes[process];
            let stage = match machine {
                ShardMachine::Replica(replica) => replica.stage(link),
                ShardMachine::Client(client) => client.stage(link),
            };
            if stage != Stage::Lost || memory.links[link.index()].is_none() {
                continue;
            }
            self.lost += 1;
            self.detach(process, link);
            let pair = (process.min(peer), process.max(peer));
            if !self.broken.iter().any(|(one, other, _)| (*one, *other) == pair) {
                let at = self.now() + self.random.between(10_000, 800_000);
                self.broken.push((pair.0, pair.1, at));
            }
        }
    }

    /// Returns the process of a group's leader, as far as one says that it leads.
    pub fn leader(&self, group: GroupId) -> Option<usize> {
        self.processes.iter().position(|process| match &process.machine {
            ShardMachine::Replica(replica) => {
                process.is_up && replica.id().group == group && replica.is_leader()
            }
            ShardMachine::Client(_) => false,
        })
    }

    pub fn kill(&mut self, process: usize, devices: &Devices) {
        self.processes[process].is_up = false;
        let oldest_first = self.random.chance(devices.oldest_first_percent);
        let step_ns = devices.destroy_step_ns;
        for context in self.network.contexts(&self.processes[process].device) {
            self.network.inject(Fault::Kill { context, oldest_first, step_ns });
        }
    }

    /// Pauses a process; its device continues.
    pub fn pause(&mut self, process: usize, ns: u64) {
        self.processes[process].next_at = self.now() + ns;
    }

    pub fn multicast(&mut self, client: ClientNumber, to: Destinations, payload: &[u8]) {
        let process = self.parts.iter().position(|part| *part == ShardRole::Client(client));
        let ShardMachine::Client(client) = &mut self.processes[process.expect("a client")].machine
        else {
            return;
        };
        if let Ok(id) = client.multicast(to, payload, Answers::OneOfEach) {
            self.sent.push((id, to));
        }
    }

    /// Returns the replicas that run.
    pub fn live(&self) -> impl Iterator<Item = ReplicaId> {
        let up = self.parts.iter().zip(&self.processes).filter(|(_, process)| process.is_up);
        up.filter_map(|(part, _)| match part {
            ShardRole::Replica(id) => Some(*id),
            ShardRole::Client(_) => None,
        })
    }
}
