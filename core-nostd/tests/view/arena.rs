//! One view: its members, the values that each has published, and those that each has seen of the
//! others.
//!
//! A member publishes into a log of writes. A reader sees a prefix of each other member's log: the
//! writes that it has *pulled*. A crash cuts the log at any write, and each reader sees its own
//! prefix of the rest. So every order in which a fabric may carry writes corresponds to some order
//! of pulls. If rows are live, as in shared memory, a member also pulls during its step, between
//! two reads of others' rows ([`Arena::step_live`]).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, JOINS_MAX, Layout, Subgroup, ViewColumn};
use tramontane_core::view::{PeerState, Stance, Status, Table, ViewChange, ViewOptions, ViewState};

use crate::around::{Around, SubgroupContents};
use crate::oracle::Decision;

/// Cells of the multicast, which follow those of the view: three per subgroup.
const CELLS_PER_SUBGROUP: usize = 3;
const SENT: usize = 0;
pub const RECEIVED: usize = 1;

/// Settings that do not change during a view.
pub struct ArenaSetting {
    pub layout: Layout<'static>,
    pub id: ViewId,
    pub options: ViewOptions,
    /// Number of calls to `prepare` until the next view's memory is ready.
    pub prepare_calls: u8,
    /// Number of calls to `deliver_to` until it is done.
    pub deliver_calls: u8,
    /// Whether a promise is on disk only at the call after the call that requests it. If off, the
    /// disk does not matter.
    pub keeps_promises: bool,
}

/// Returns a view of these nodes, whose subgroups have these members, all of which send. It is
/// never freed.
pub fn setting(
    id: u64,
    nodes: &[NodeId],
    subgroups: &[Vec<Rank>],
    options: ViewOptions,
) -> ArenaSetting {
    let members: &'static [NodeId] = Box::leak(nodes.into());
    let subgroups: Vec<Subgroup<'static>> = subgroups
        .iter()
        .map(|ranks| {
            let ranks: &'static [Rank] = Box::leak(ranks.clone().into());
            Subgroup {
                members: ranks,
                senders: ranks,
                window: 4,
                message_max: 8,
                delivery: Delivery::Ordered,
            }
        })
        .collect();
    let group = Group { members, subgroups: Box::leak(subgroups.into()) };
    let layout = Layout::with_views(group).expect("a good group");
    ArenaSetting {
        layout,
        id: ViewId(id),
        options,
        prepare_calls: 1,
        deliver_calls: 1,
        keeps_promises: false,
    }
}

/// Returns the options of a view in which time does not matter: losses are reported.
pub fn timeless() -> ViewOptions {
    ViewOptions {
        heartbeat_interval_ns: u64::MAX,
        failure_timeout_ns: u64::MAX,
        first_timeout_ns: u64::MAX,
        members_max: 64,
        majority: true,
    }
}

impl ArenaSetting {
    pub fn members(&self) -> usize {
        self.layout.members()
    }

    pub fn subgroups(&self) -> &'static [Subgroup<'static>] {
        self.layout.group().subgroups
    }

    fn cells(&self) -> usize {
        self.multicast_cell(self.subgroups().len(), 0)
    }

    pub fn cell(&self, column: ViewColumn) -> Option<usize> {
        Some(self.layout.view_block()?.offset(column)? / 8)
    }

    pub fn multicast_cell(&self, subgroup: usize, which: usize) -> usize {
        self.layout.view_block().expect("a layout with views").bytes() / 8
            + subgroup * CELLS_PER_SUBGROUP
            + which
    }
}

/// One member.
#[derive(Clone)]
pub struct ArenaMember {
    pub state: ViewState,
    pub peers: Vec<PeerState>,
    pub next: Vec<NodeId>,
    pub alive: bool,
    /// Whether the member has memory of this view and takes part.
    pub open: bool,
    pub around: Around,
    /// The writes that the member has published, in order.
    pub log: Vec<(u16, u64)>,
    pub row: Vec<u64>,
    /// For each member's log: the writes that this member has seen, and those that it may ever see.
    pub seen: Vec<usize>,
    pub visible: Vec<usize>,
    pub copies: Vec<Vec<u64>>,
    /// Whether the member has ever accepted a sealed list.
    pub echoed: bool,
}

impl Hash for ArenaMember {
    fn hash<H: Hasher>(&self, into: &mut H) {
        (&self.state, &self.peers, self.alive, self.open, &self.around, self.echoed).hash(into);
        self.row.hash(into);
    }
}

/// Writes that arrive during a step.
#[derive(Default)]
struct Arrivals<'a> {
    /// Number of reads of others' rows so far in this step.
    looks: u64,
    /// For each member: the writes that may still arrive, and the number that have arrived.
    waiting: Vec<VecDeque<(u16, u64)>>,
    arrived: Vec<usize>,
    /// Returns the number of a member's writes that arrive before a read, given the number of the
    /// read and the member.
    schedule: Option<&'a mut dyn FnMut(u64, usize) -> usize>,
}

/// Row memory of one member during its step.
struct Cells<'a> {
    setting: &'a ArenaSetting,
    own: usize,
    row: &'a mut Vec<u64>,
    log: &'a mut Vec<(u16, u64)>,
    copies: RefCell<&'a mut Vec<Vec<u64>>>,
    arrivals: RefCell<Arrivals<'a>>,
}

impl Cells<'_> {
    fn get(&self, owner: usize, cell: usize) -> u64 {
        if owner == self.own {
            return self.row[cell];
        }
        self.arrive();
        self.copies.borrow()[owner][cell]
    }

    /// Makes all writes visible that are scheduled before this read.
    fn arrive(&self) {
        let Arrivals { looks, waiting, arrived, schedule } = &mut *self.arrivals.borrow_mut();
        let Some(schedule) = schedule else { return };
        *looks += 1;
        for (writer, waiting) in
            waiting.iter_mut().enumerate().filter(|(_, waiting)| !waiting.is_empty())
        {
            let writes = schedule(*looks, writer).min(waiting.len());
            for (cell, value) in waiting.drain(..writes) {
                self.copies.borrow_mut()[writer][usize::from(cell)] = value;
            }
            arrived[writer] += writes;
        }
    }

    fn put(&mut self, cell: usize, value: u64) {
        assert!(value >= self.row[cell], "cell {cell} of {} shrinks", self.own);
        if value != self.row[cell] {
            self.row[cell] = value;
            self.log.push((cell as u16, value));
        }
    }
}

impl Table for Cells<'_> {
    fn load(&self, owner: Rank, column: ViewColumn) -> u64 {
        self.setting.cell(column).map_or(0, |cell| self.get(owner.index(), cell))
    }

    fn publish(&mut self, column: ViewColumn, value: u64) {
        let cell = self.setting.cell(column).expect("a column of the view");
        // Every published value is posted to all members. Only a request to leave may be repeated.
        let is_new = column == ViewColumn::Leaving || self.row[cell] != value;
        assert!(is_new, "{column:?} of {}: nothing new", self.own);
        self.put(cell, value);
    }
}

/// All members of one view.
#[derive(Clone)]
pub struct Arena {
    pub setting: &'static ArenaSetting,
    pub members: Vec<ArenaMember>,
    /// The first decision of any member.
    pub decision: Option<Decision>,
}

impl Arena {
    /// Returns all members in their initial state.
    pub fn new(setting: &'static ArenaSetting) -> Self {
        let count = setting.members();
        let subgroups = setting.subgroups();
        let member = |rank: usize| {
            let state = ViewState::new(setting.id, Rank(rank as u16), setting.options);
            let part = SubgroupContents {
                sent_seen: vec![0; count],
                received_seen: vec![0; count],
                ..SubgroupContents::default()
            };
            ArenaMember {
                state,
                peers: vec![PeerState::default(); count],
                next: vec![NodeId(0); (count + JOINS_MAX).max(setting.options.members_max)],
                alive: true,
                open: true,
                around: Around {
                    parts: vec![part; subgroups.len()],
                    prepare_needs: setting.prepare_calls,
                    deliver_needs: setting.deliver_calls,
                    keeps_promises: setting.keeps_promises,
                    ..Around::default()
                },
                log: Vec::new(),
                row: vec![0; setting.cells()],
                seen: vec![0; count],
                visible: vec![usize::MAX; count],
                copies: vec![vec![0; setting.cells()]; count],
                echoed: false,
            }
        };
        Self { setting, members: (0..count).map(member).collect(), decision: None }
    }

    /// Returns the number of writes in a member's log that a reader can still pull.
    pub fn unseen(&self, reader: usize, writer: usize) -> usize {
        let end = self.members[writer].log.len().min(self.members[reader].visible[writer]);
        end - self.members[reader].seen[writer]
    }

    /// Lets a reader see up to `writes` more writes of a writer.
    pub fn pull(&mut self, reader: usize, writer: usize, writes: usize) {
        let from = self.members[reader].seen[writer];
        let writes = writes.min(self.unseen(reader, writer));
        let news: Vec<(u16, u64)> = self.members[writer].log[from..from + writes].to_vec();
        let member = &mut self.members[reader];
        for (cell, value) in news {
            member.copies[writer][usize::from(cell)] = value;
        }
        member.seen[writer] = from + writes;
    }

    /// Pulls all available writes.
    pub fn pull_all(&mut self, reader: usize) {
        for writer in 0..self.members.len() {
            if writer != reader {
                self.pull(reader, writer, usize::MAX);
            }
        }
    }

    /// Calls a member's view protocol with its table.
    fn with<R>(
        &mut self,
        rank: usize,
        call: impl FnOnce(&mut ViewChange<'_>, &mut Cells<'_>, &mut Around) -> R,
    ) -> R {
        let setting = self.setting;
        let ArenaMember { state, peers, next, row, log, copies, around, .. } =
            &mut self.members[rank];
        let (copies, arrivals) = (RefCell::new(copies), RefCell::default());
        let mut cells = Cells { setting, own: rank, row, log, copies, arrivals };
        let mut change =
            ViewChange::new(&setting.layout, state, peers, next).expect("state that fits");
        call(&mut change, &mut cells, around)
    }

    /// One step of a member: the view protocol, then the multicast.
    pub fn step(&mut self, rank: usize, now: Time, send: impl Fn(usize) -> Option<u64>) -> Status {
        let status = self.with(rank, |change, cells, around| change.step(now, cells, around));
        self.after_step(rank, status, send);
        status
    }

    /// Steps a member whose peers' rows change while it reads them: before each read, `schedule`
    /// returns the number of each member's writes that arrive. Its arguments are the number of the
    /// read, starting at one, and the member.
    pub fn step_live(
        &mut self,
        rank: usize,
        now: Time,
        send: impl Fn(usize) -> Option<u64>,
        mut schedule: impl FnMut(u64, usize) -> usize,
    ) -> Status {
        let count = self.members.len();
        let waiting = |writer: usize| {
            let (from, unseen) = (self.members[rank].seen[writer], self.unseen(rank, writer));
            if writer == rank {
                return VecDeque::new();
            }
            self.members[writer].log[from..from + unseen].iter().copied().collect()
        };
        let waiting = (0..count).map(waiting).collect();
        let arrivals =
            Arrivals { looks: 0, waiting, arrived: vec![0; count], schedule: Some(&mut schedule) };
        let (status, arrived) = {
            let setting = self.setting;
            let ArenaMember { state, peers, next, row, log, copies, around, .. } =
                &mut self.members[rank];
            let (copies, arrivals) = (RefCell::new(copies), RefCell::new(arrivals));
            let mut cells = Cells { setting, own: rank, row, log, copies, arrivals };
            let mut change =
                ViewChange::new(&setting.layout, state, peers, next).expect("state that fits");
            let status = change.step(now, &mut cells, around);
            (status, cells.arrivals.into_inner().arrived)
        };
        for (seen, arrived) in self.members[rank].seen.iter_mut().zip(arrived) {
            *seen += arrived;
        }
        self.after_step(rank, status, send);
        status
    }

    fn after_step(&mut self, rank: usize, status: Status, send: impl Fn(usize) -> Option<u64>) {
        if !status.is_final() {
            self.multicast(rank, send);
        }
        let accepted =
            Stance::decode(self.members[rank].row[self.setting.cell(ViewColumn::Stance).unwrap()]);
        if crate::oracle::is_sealed(self.setting, &self.members[rank].row, accepted.accepted.count)
        {
            self.members[rank].echoed = true;
        }
    }

    /// Runs the multicast: publishes counts of rounds, and collects frontiers. A sender without a
    /// message uses rounds as nulls when others are ahead.
    fn multicast(&mut self, rank: usize, send: impl Fn(usize) -> Option<u64>) {
        let setting = self.setting;
        let ArenaMember { row, log, copies, around, .. } = &mut self.members[rank];
        let (copies, arrivals) = (RefCell::new(copies), RefCell::default());
        let mut cells = Cells { setting, own: rank, row, log, copies, arrivals };
        for (id, subgroup) in setting.subgroups().iter().enumerate() {
            let Some(own) = subgroup.members.iter().position(|member| member.index() == rank)
            else {
                continue;
            };
            let part = &mut around.parts[id];
            let senders = subgroup.members.len() as u64;
            if !around.wedged {
                for (at, member) in subgroup.members.iter().enumerate() {
                    if at != own && !around.cut.contains(&member.0) {
                        part.sent_seen[at] =
                            cells.get(member.index(), setting.multicast_cell(id, SENT));
                    }
                }
                if let Some(message) = send(id) {
                    part.rounds.push(Some(message));
                }
                let owed = |at: usize, rounds: u64| {
                    if own < at { rounds } else { rounds.saturating_sub(1) }
                };
                let others = (0..subgroup.members.len()).filter(|at| *at != own);
                let owed = others.map(|at| owed(at, part.sent_seen[at])).max().unwrap_or(0);
                while (part.rounds.len() as u64) < owed {
                    part.rounds.push(None);
                }
                part.sent_seen[own] = part.rounds.len() as u64;
                cells.put(setting.multicast_cell(id, SENT), part.sent_seen[own]);
                let mut frontier = 0;
                while part.sent_seen[(frontier % senders) as usize] > frontier / senders {
                    frontier += 1;
                }
                part.received = frontier;
                cells.put(setting.multicast_cell(id, RECEIVED), frontier);
            }
            for (at, member) in subgroup.members.iter().enumerate() {
                if at != own && !around.cut.contains(&member.0) {
                    part.received_seen[at] =
                        cells.get(member.index(), setting.multicast_cell(id, RECEIVED));
                }
            }
            part.received_seen[own] = part.received;
            let stable =
                part.received_seen[..subgroup.members.len()].iter().min().copied().unwrap_or(0);
            part.delivered = part.delivered.max(stable);
        }
    }

    pub fn lose(&mut self, rank: usize, peer: usize) {
        self.with(rank, |change, _, _| change.peer_lost(Rank(peer as u16)));
    }

    /// Makes a peer refuse all further writes by a member.
    pub fn deny(&mut self, rank: usize, peer: usize) {
        self.with(rank, |change, _, _| change.denied_by(Rank(peer as u16)));
    }

    /// Returns the peers that a member suspects, and its status.
    pub fn suspected(&mut self, rank: usize) -> (Vec<usize>, Status) {
        let count = self.members.len();
        self.with(rank, |change, cells, _| {
            let is_suspected = |peer: &usize| change.suspects(cells, Rank(*peer as u16));
            ((0..count).filter(is_suspected).collect(), change.status())
        })
    }

    pub fn leave(&mut self, rank: usize) {
        self.with(rank, |change, cells, _| change.leave(cells));
    }

    pub fn wish(&mut self, rank: usize, node: NodeId) {
        self.with(rank, |change, cells, _| change.request_join(cells, node))
            .expect("a node from outside");
    }

    pub fn take_back(&mut self, rank: usize) {
        self.with(rank, |change, cells, _| change.withdraw_join(cells)).expect("there was a wish");
    }

    pub fn next_view(&mut self, rank: usize) -> Option<Vec<NodeId>> {
        self.with(rank, |change, _, _| change.next_view().map(|next| next.members.to_vec()))
    }

    pub fn trim(&mut self, rank: usize, subgroup: usize) -> Option<u64> {
        let id = SubgroupId(subgroup as u16);
        self.with(rank, |change, cells, _| change.trim(cells, id).map(|trim| trim.0))
    }

    pub fn leader(&mut self, rank: usize) -> usize {
        self.with(rank, |change, cells, _| change.leader(cells).index())
    }

    /// Stops a member for good. Only the first `writes` of its log were ever sent, and each reader
    /// sees no more of them than `visible` says.
    pub fn crash(&mut self, rank: usize, writes: usize, visible: &[usize]) {
        self.members[rank].alive = false;
        for (reader, member) in self.members.iter_mut().enumerate() {
            if reader != rank {
                member.visible[rank] = visible[reader].min(writes).max(member.seen[rank]);
            }
        }
    }

    /// Stops a member for good; everything that it published arrives.
    pub fn crash_now(&mut self, rank: usize) {
        let length = self.members[rank].log.len();
        self.crash(rank, length, &vec![length; self.members.len()]);
    }

    pub fn status(&self, rank: usize) -> Status {
        self.members[rank].state.status()
    }

    pub fn accepted(&self, rank: usize) -> Stance {
        Stance::decode(self.members[rank].row[self.setting.cell(ViewColumn::Stance).unwrap()])
    }

    /// Returns whether a step of the member can do anything.
    pub fn is_active(&self, rank: usize) -> bool {
        let member = &self.members[rank];
        member.alive && member.open && !member.state.status().is_final()
    }

    /// Returns whether a reader may still read a writer's row: not if the reader no longer takes
    /// part, or has cut the writer off.
    pub fn reads(&self, reader: usize, writer: usize) -> bool {
        self.is_active(reader) && !self.members[reader].around.cut.contains(&(writer as u16))
    }

    /// Returns a number that, barring collisions, two states share only if their futures are the
    /// same.
    pub fn fingerprint(&self) -> u64 {
        let mut into = std::collections::hash_map::DefaultHasher::new();
        for (rank, member) in self.members.iter().enumerate() {
            if self.is_active(rank) {
                member.hash(&mut into);
            } else {
                // An inactive member's state no longer matters, except its deliveries.
                let delivered: Vec<u64> =
                    member.around.parts.iter().map(|part| part.delivered).collect();
                (member.alive, member.open, member.state.status(), delivered, member.echoed)
                    .hash(&mut into);
                (&member.around.kept, &member.around.keeping).hash(&mut into);
            }
            for (reader, other) in self.members.iter().enumerate() {
                if reader != rank && self.reads(reader, rank) {
                    other.copies[rank].hash(&mut into);
                    let end = member.log.len().min(other.visible[rank]);
                    member.log[other.seen[rank]..end].hash(&mut into);
                }
            }
        }
        self.decision.hash(&mut into);
        into.finish()
    }
}
