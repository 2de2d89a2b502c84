//! Replicas and clients over the network of these tests, stepped in an order chosen by a seed.

mod answering;
mod clients;
mod disks;
mod lending;
mod snapshots;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tramontane_core::fabric::Fabric;
use tramontane_core::ids::{ClientNumber, GroupId, Rank, Time};
use tramontane_core::tram::{
    Answers, Attachment, Client, ClientLink, ClientLinks, ClientOptions, Delivered, Destinations,
    Group, GroupState, LeastSaved, LentState, Limits, LinkId, LinkRole, LinkState, MessageId,
    MessageState, Overlay, Replica, ReplicaId, ReplicaLinks, ReplicaOptions, SendError, Shape,
    SourceState, Stage,
};

use super::network::{NetworkEnd, TestNetwork, capabilities};
use super::random::Random;
use answering::{Answering, expected_answer};
use disks::ReplicaDisk;
pub use lending::{Leased, Lending};

/// Time for which a client may be disconnected.
pub const LEASE_NS: u64 = 300_000;

/// One running replica.
pub struct RunningReplica {
    pub replica: Replica<'static>,
    pub memory: Lending,
    end: NetworkEnd,
    pub incarnation: u16,
    _state: (Leased<LinkState>, Leased<SourceState>, Leased<u64>, Leased<u8>),
}

/// One running client.
pub struct RunningClient {
    pub client: Client<'static>,
    pub memory: Lending,
    end: NetworkEnd,
    pub incarnation: u32,
    _state: (Leased<ClientLink>, Leased<GroupState>, Leased<MessageState>, Leased<u8>),
}

/// The deliveries of a replica over all its incarnations; a snapshot brings the deliveries before
/// it.
#[derive(Clone, Debug, Default)]
pub struct ReplicaHistory {
    pub messages: Vec<(u64, MessageId)>,
}

/// A message that a client multicast.
#[derive(Clone, Debug)]
pub struct ClientMessage {
    pub destinations: Destinations,
    pub payload: Vec<u8>,
    pub answered: bool,
}

#[derive(Clone, Copy)]
pub struct Settings {
    pub seed: u64,
    pub batching: bool,
    pub early: bool,
    pub leaders_alone: bool,
    pub log_entries: u32,
    pub window: u32,
    pub clients: u16,
    /// Payload length at and above which entries use references. Zero means never.
    pub references_from: u32,
    /// Maximum length of a message.
    pub payload_max: u32,
    /// Maximum length of an answer. Zero means that answers are single bytes.
    pub answer_max: u32,
    /// Interval between heartbeats, for each replica of the overlay.
    pub heartbeat_ns: u64,
    /// Whether replicas sometimes fall behind by more than a log, or receive snapshots that they
    /// have not requested.
    pub more_snapshots: bool,
    /// Percentage of calls that the fabric refuses.
    pub refuses: usize,
    /// Percentage of attached links whose rows a process lacks in a step.
    pub hides: usize,
    /// Percentage of row requests, within a step, at which something lands.
    pub lands_within: usize,
    /// Number of payload bytes that a step copies before it takes no more.
    pub run_bytes: u64,
    /// If not zero, writes complete before they are visible. Probability in percent that such a
    /// write is placed next, rather than another one taken.
    pub places_percent: usize,
    /// Whether replicas save their logs, and continue from them.
    pub durable: bool,
    /// Probability in percent that a step of a durable replica finds some of its writes saved.
    pub saves_percent: usize,
    /// Maximum number of bytes that the fabric accepts in one write, and in one list to a log.
    pub write_bytes_max: usize,
    /// Maximum number of writes that the fabric accepts in one list.
    pub writes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            batching: true,
            early: true,
            leaders_alone: true,
            log_entries: 16,
            window: 4,
            clients: 2,
            references_from: 0,
            payload_max: 200,
            answer_max: 0,
            // The interval is long enough that this network can carry heartbeats in addition to all
            // other traffic.
            heartbeat_ns: 2_500,
            more_snapshots: false,
            refuses: 0,
            hides: 0,
            lands_within: 0,
            run_bytes: ReplicaOptions::default().run_bytes,
            places_percent: 0,
            durable: false,
            saves_percent: 30,
            write_bytes_max: capabilities().write_bytes_max,
            writes_max: capabilities().writes_max,
        }
    }
}

pub struct World {
    pub overlay: &'static Overlay,
    pub network: Rc<RefCell<TestNetwork>>,
    pub settings: Settings,
    pub now: u64,
    pub replicas: BTreeMap<ReplicaId, RunningReplica>,
    incarnations: BTreeMap<ReplicaId, u16>,
    pub disks: BTreeMap<ReplicaId, ReplicaDisk>,
    /// Replica whose disk saves nothing now, and loses all of that in a crash.
    pub unsaving: Option<ReplicaId>,
    pub histories: BTreeMap<ReplicaId, ReplicaHistory>,
    /// The message that any replica, including crashed ones, has ever delivered at a position of
    /// its group.
    pub ever: BTreeMap<(GroupId, u64), MessageId>,
    pub clients: BTreeMap<ClientNumber, RunningClient>,
    client_incarnations: BTreeMap<ClientNumber, u32>,
    pub sent: BTreeMap<MessageId, ClientMessage>,
    /// The replicas that had replied to a message when it was answered, and whether each led its
    /// group then.
    pub replied: BTreeMap<MessageId, Vec<(ReplicaId, bool)>>,
    paused: BTreeMap<usize, u64>,
    pub random: Random,
    /// Pairs of replicas whose connection was lost.
    broken: Vec<(ReplicaId, ReplicaId)>,
    pub complaints: Vec<String>,
    /// Whether replicas receive snapshots from voters.
    pub gives_snapshots: bool,
    pub leaders: u32,
    pub restored: u32,
    pub admitted: u32,
    /// Number of times that a replica has continued from its disk.
    pub recovered: u32,
    /// The knowledge of each replica about the disks of the others in its group: first the one that
    /// knows it.
    shown: BTreeMap<(ReplicaId, ReplicaId), LeastSaved>,
    /// Number of times that a replica lacked something that it had shown to another.
    pub noticed: u32,
    /// Number of references that all steps of replicas took, carried, fetched and gave up.
    pub references: u32,
    pub carried: u32,
    pub fetched: u32,
    pub given_up: u32,
    /// Maximum number of payload bytes that a step of a replica has copied.
    pub most_copied: u64,
    /// Number of answers with bytes that clients have received.
    pub answers: u32,
    /// Number of lists that clients have posted.
    pub clients_lists: u32,
    /// Number of steps of replicas that reported no work.
    pub idle_steps: u32,
}

/// Returns a tree of groups, given each group's parent, with `replicas` replicas per group.
pub fn tree(parents: &[Option<u16>], replicas: u16, settings: &Settings) -> Overlay {
    let groups: Vec<Group> =
        parents.iter().map(|parent| Group { parent: parent.map(GroupId), replicas }).collect();
    let limits = Limits {
        clients: settings.clients,
        log_entries: settings.log_entries,
        client_window: settings.window,
        parent_window: settings.window,
        payload_max: settings.payload_max,
    };
    let overlay = Overlay::new(&groups, limits).expect("a tree");
    overlay.with_references(settings.references_from).with_answers(settings.answer_max)
}

impl World {
    pub fn new(parents: &[Option<u16>], replicas: u16, settings: Settings) -> Self {
        let overlay = Box::leak(Box::new(tree(parents, replicas, &settings)));
        let mut world = Self {
            overlay,
            network: TestNetwork::new(settings.seed),
            settings,
            now: 1,
            replicas: BTreeMap::new(),
            incarnations: BTreeMap::new(),
            disks: BTreeMap::new(),
            unsaving: None,
            histories: BTreeMap::new(),
            ever: BTreeMap::new(),
            clients: BTreeMap::new(),
            client_incarnations: BTreeMap::new(),
            sent: BTreeMap::new(),
            replied: BTreeMap::new(),
            paused: BTreeMap::new(),
            random: Random::new(settings.seed ^ 0xabcd),
            broken: Vec::new(),
            complaints: Vec::new(),
            gives_snapshots: true,
            leaders: 0,
            restored: 0,
            admitted: 0,
            recovered: 0,
            shown: BTreeMap::new(),
            noticed: 0,
            references: 0,
            carried: 0,
            fetched: 0,
            given_up: 0,
            most_copied: 0,
            answers: 0,
            clients_lists: 0,
            idle_steps: 0,
        };
        world.network.borrow_mut().refuses = settings.refuses;
        world.network.borrow_mut().write_bytes_max = settings.write_bytes_max;
        world.network.borrow_mut().writes_max = settings.writes_max;
        world.network.borrow_mut().places_percent = settings.places_percent;
        world.network.borrow_mut().lands_within = settings.lands_within;
        for id in world.ids() {
            if settings.durable {
                world.disks.insert(id, ReplicaDisk::of_founder());
            }
            world.start_replica(id, true);
        }
        for number in 0..settings.clients {
            world.start_client(ClientNumber(number));
        }
        world
    }

    pub fn ids(&self) -> Vec<ReplicaId> {
        let of = |group| {
            (0..self.overlay.replicas(group)).map(move |rank| ReplicaId { group, rank: Rank(rank) })
        };
        self.overlay.all().iter().flat_map(of).collect()
    }

    pub fn start_replica(&mut self, id: ReplicaId, is_founder: bool) {
        let shape = Shape::of(self.overlay, id.group);
        let links = ReplicaLinks::of(self.overlay, id.group);
        let incarnation = self.incarnations.entry(id).or_insert(0);
        *incarnation += 1;
        let incarnation = *incarnation;
        let state = (
            Leased::new(links.len()),
            Leased::new(usize::from(self.settings.clients) + 1),
            Leased::new(Replica::reply_cells(self.overlay)),
            Leased::new(self.settings.payload_max as usize),
        );
        let heartbeat_ns = self.settings.heartbeat_ns * self.ids().len() as u64;
        let options = ReplicaOptions {
            heartbeat_ns,
            suspect_ns: 10 * heartbeat_ns,
            campaign_ns: 20 * heartbeat_ns,
            lease_ns: LEASE_NS,
            incarnation,
            is_founder,
            batching: self.settings.batching,
            passes_on_early: self.settings.early,
            serves_leaders_alone: self.settings.leaders_alone,
            is_durable: self.settings.durable,
            run_bytes: self.settings.run_bytes,
        };
        let lent = LentState {
            links: state.0.lend(),
            sources: state.1.lend(),
            replies: state.2.lend(),
            payload: state.3.lend(),
        };
        let process = self.network.borrow_mut().add(shape.log_bytes());
        let log = self.network.borrow().log(process);
        let memory = Lending::new(log, links.len(), &self.network);
        let end = NetworkEnd { network: Rc::clone(&self.network), process };
        let replica = Replica::open(self.overlay, id, options, end.capabilities(), lent)
            .expect("a replica of the overlay");
        let mut running = RunningReplica { replica, memory, end, incarnation, _state: state };
        self.histories.insert(id, ReplicaHistory::default());
        if !is_founder && !self.recover(id, &mut running) {
            self.restore(id, &mut running);
        }
        self.replicas.insert(id, running);
        self.connect_replica(id);
    }

    fn connect_replica(&mut self, id: ReplicaId) {
        for other in self.ids() {
            if other != id && self.replicas.contains_key(&other) {
                self.connect_replicas(id, other);
            }
        }
        let clients: Vec<ClientNumber> = self.clients.keys().copied().collect();
        for client in clients {
            self.connect_client(client, id);
        }
    }

    fn connect_replicas(&mut self, a: ReplicaId, b: ReplicaId) {
        let links = |id: ReplicaId, other: ReplicaId| {
            ReplicaLinks::of(self.overlay, id.group).find_replica(self.overlay, id.group, other)
        };
        let (Some(link_a), Some(link_b)) = (links(a, b), links(b, a)) else { return };
        let bytes = |from: ReplicaId, to: ReplicaId| {
            if from.group == to.group {
                Shape::of(self.overlay, from.group).peer_row_bytes()
            } else if self.overlay.parent(to.group) == Some(from.group) {
                Shape::of(self.overlay, to.group).parent_row_bytes()
            } else {
                Shape::of(self.overlay, from.group).child_row_bytes()
            }
        };
        let processes = [self.replicas[&a].end.process, self.replicas[&b].end.process];
        let sizes = [bytes(a, b), bytes(b, a)];
        let (view, rows) = self.network.borrow_mut().connect(processes, sizes);
        let incarnations = [self.replicas[&a].incarnation, self.replicas[&b].incarnation];
        let now = Time(self.now);
        for (end, (id, link)) in [(a, link_a), (b, link_b)].into_iter().enumerate() {
            let running = self.replicas.get_mut(&id).expect("it runs");
            let before = running.memory.links[link.index()].replace(Rc::clone(&rows[end]));
            if let Some(before) = before {
                self.network.borrow_mut().close(&before);
            }
            let attachment = Attachment {
                view,
                peer: Rank(1 - end as u16),
                incarnation: u32::from(incarnations[1 - end]),
            };
            running.replica.attach(now, link, attachment, &running.memory).expect("it fits");
        }
    }

    pub fn crash_replica(&mut self, id: ReplicaId) {
        self.note_shown(id);
        if let Some(running) = self.replicas.remove(&id) {
            self.network.borrow_mut().crash(running.end.process);
            self.lose_unsaved(id);
        }
    }

    /// Pauses a process until a given time; its peers' writes still land.
    pub fn pause(&mut self, id: ReplicaId, until: u64) {
        if let Some(running) = self.replicas.get(&id) {
            self.paused.insert(running.end.process, until);
        }
    }

    pub fn process_of(&self, id: ReplicaId) -> Option<usize> {
        self.replicas.get(&id).map(|running| running.end.process)
    }

    /// Blocks all traffic except that between these processes.
    pub fn allow_only(&mut self, replicas: &[ReplicaId], clients: &[ClientNumber]) {
        let replicas = replicas.iter().filter_map(|id| self.replicas.get(id));
        let clients = clients.iter().filter_map(|number| self.clients.get(number));
        let processes: Vec<usize> = replicas
            .map(|running| running.end.process)
            .chain(clients.map(|running| running.end.process))
            .collect();
        self.network.borrow_mut().allow_only(&processes);
    }

    /// Performs one event: a piece lands, or a process steps.
    pub fn advance(&mut self) {
        self.now += 100;
        if !self.broken.is_empty() && self.random.chance(2) {
            self.reconnect();
        }
        if self.random.chance(75) && self.network.borrow_mut().deliver() {
            return;
        }
        let replicas = self.replicas.len();
        if replicas + self.clients.len() == 0 {
            return;
        }
        let choice = self.random.below(replicas + self.clients.len());
        if choice < replicas {
            let id = *self.replicas.keys().nth(choice).expect("one of them");
            self.step_replica(id);
        } else {
            let number = *self.clients.keys().nth(choice - replicas).expect("one of them");
            self.step_client(number);
        }
    }

    /// Reconnects two running replicas once both know that they have lost each other.
    pub fn reconnect(&mut self) {
        if self.broken.is_empty() {
            return;
        }
        let at = self.random.below(self.broken.len());
        let (a, b) = self.broken[at];
        let has_link = |id: ReplicaId, other: ReplicaId| {
            let running = self.replicas.get(&id)?;
            let link = running.replica.links().find_replica(self.overlay, id.group, other)?;
            Some(running.replica.stage(link) != Stage::Absent)
        };
        let links = (has_link(a, b), has_link(b, a));
        if links == (Some(false), Some(false)) {
            self.connect_replicas(a, b);
        }
        let is_waiting = matches!(links, (Some(false), Some(true)) | (Some(true), Some(false)));
        if !is_waiting {
            self.broken.swap_remove(at);
        }
    }

    fn is_paused(&self, process: usize) -> bool {
        self.paused.get(&process).is_some_and(|until| self.now < *until)
    }

    pub fn step_replica(&mut self, id: ReplicaId) {
        let Some(running) = self.replicas.get(&id) else { return };
        if self.is_paused(running.end.process) {
            return;
        }
        let was_voter = running.replica.is_voter();
        let was_leader = running.replica.is_leader();
        let mut running = self.replicas.remove(&id).expect("it runs");
        if running.replica.needs_snapshot() {
            self.restore(id, &mut running);
        }
        let history = self.histories.get_mut(&id).expect("a history");
        let mut complaints = Vec::new();
        let deliver = judging(id, history, &mut self.ever, &self.sent, &mut complaints);
        let mut application = Answering::new(deliver, id.group);
        running.memory.hide(self.settings.hides, &mut self.random);
        let process = running.end.process;
        let lists = |network: &TestNetwork| network.lists.get(&process).copied();
        let lists_before = lists(&self.network.borrow());
        let stepped = running.replica.step(
            Time(self.now),
            &mut running.end,
            &running.memory,
            &mut application,
        );
        running.memory.show();
        drop(application);
        self.complaints.append(&mut complaints);
        match stepped {
            Ok(did) => {
                self.references += did.references;
                self.carried += did.carried;
                self.fetched += did.fetched;
                self.given_up += did.given_up;
                self.most_copied = self.most_copied.max(did.copied_bytes);
                let has_done = did.delivered > 0
                    || did.copied_bytes > 0
                    || lists(&self.network.borrow()) != lists_before;
                if did.is_idle() && has_done {
                    self.complaints.push(format!("{id}: it says that it did nothing: {did:?}"));
                }
                self.idle_steps += u32::from(did.is_idle());
            }
            Err(halt) => self.complaints.push(format!("{id}: {halt}")),
        }
        let ids = self.ids();
        for (index, place) in running.memory.links.iter_mut().enumerate() {
            let link = LinkId(index as u16);
            if running.replica.stage(link) == Stage::Lost {
                running.replica.detach(Time(self.now), link);
                if let Some(rows) = place.take() {
                    self.network.borrow_mut().close(&rows);
                }
                let other = ids.iter().copied().find(|other| {
                    running.replica.links().find_replica(self.overlay, id.group, *other)
                        == Some(link)
                });
                self.broken.extend(other.map(|other| (id, other)));
            }
        }
        self.save(id, &mut running);
        self.admitted += u32::from(!was_voter && running.replica.is_voter());
        self.leaders += u32::from(!was_leader && running.replica.is_leader());
        self.replicas.insert(id, running);
    }

    pub fn run(&mut self, actions: usize) {
        for _ in 0..actions {
            self.advance();
        }
    }

    /// Runs until a condition holds; returns whether it does.
    pub fn run_until(&mut self, actions: usize, mut holds: impl FnMut(&Self) -> bool) -> bool {
        for action in 0..actions {
            if action % 64 == 0 && holds(self) {
                return true;
            }
            self.advance();
        }
        holds(self)
    }
}

/// Returns the application of a replica, which notes what it is given and complains about it.
fn judging<'w>(
    id: ReplicaId,
    history: &'w mut ReplicaHistory,
    ever: &'w mut BTreeMap<(GroupId, u64), MessageId>,
    sent: &'w BTreeMap<MessageId, ClientMessage>,
    complaints: &'w mut Vec<String>,
) -> impl FnMut(&Delivered<'_>) -> u8 + 'w {
    move |message: &Delivered<'_>| {
        history.messages.push((message.place, message.id));
        let before = *ever.entry((id.group, message.place)).or_insert(message.id);
        if before != message.id {
            let place = message.place;
            complaints.push(format!("{id}: {} at {place}, not {before}", message.id));
        }
        match sent.get(&message.id) {
            None => complaints.push(format!("{id}: {} was never sent", message.id)),
            Some(sent) => {
                if sent.payload != message.payload {
                    complaints.push(format!("{id}: {} has other bytes", message.id));
                }
                if sent.destinations != message.destinations
                    || !sent.destinations.contains(id.group)
                {
                    complaints.push(format!("{id}: {} is not for it", message.id));
                }
            }
        }
        message.id.number as u8
    }
}
