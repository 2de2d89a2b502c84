//! Members of a group in virtual time, each with its own fake device and a side channel.

pub mod nodes;

use std::collections::BTreeMap;
use std::time::Duration;

use tramontane_core::fabric::{
    ErrorKind, Event, Fabric as _, HostFabric as _, Kind, LossCause, ViewPlan, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_fixtures::network::{
    Network as SideNetwork, SharedNetwork as SharedSideNetwork, SimFabric as SideChannel,
};
use tramontane_fixtures::profile::Profile as SideProfile;
use tramontane_fixtures::world::Hardware as _;
use tramontane_verbs::devices::Wanted;
use tramontane_verbs::fake::{Clock, ContextId, DeviceName, Fault, Network, Profile};
use tramontane_verbs::{Limits, NoView, RdmaViews, Rows, Site};

pub const MILLISECOND_NS: u64 = 1_000_000;

/// The time for which a peer may be silent.
pub const LOSS_TIME: Duration = Duration::from_millis(20);

/// Time limit for giving up a silent peer.
pub const LONG_NS: u64 = 200 * MILLISECOND_NS;

const ROW_BYTES: usize = 4096;

/// The state of one member.
pub struct DeviceMember {
    pub fabric: RdmaViews<SideChannel>,
    pub rows: BTreeMap<ViewId, Rows>,
    /// The member's events since they were last taken.
    pub events: Vec<Event>,
    pub context: ContextId,
}

/// All members: process `i` has device `i` and is the node with number `10 + i`.
pub struct DeviceMembers {
    pub network: Network,
    pub side: SharedSideNetwork,
    pub devices: Vec<DeviceName>,
    /// The members by process; `None` for one that has been killed.
    pub members: Vec<Option<DeviceMember>>,
}

pub const fn node(process: usize) -> NodeId {
    NodeId(10 + process as u32)
}

impl DeviceMembers {
    /// Creates members whose devices are all of one kind.
    pub fn new(profile: &Profile, members: usize) -> Self {
        let any = Wanted::default();
        Self::with_wishes(&vec![profile.clone(); members], &vec![any; members])
    }

    /// Creates members with these devices and these further constraints.
    pub fn with_wishes(profiles: &[Profile], wishes: &[Wanted]) -> Self {
        let members = profiles.len();
        let network = Network::new(7, Clock::Virtual);
        // The side channel reports a dead process later than the device falls silent.
        let side = SideProfile { retry_ns: 50 * MILLISECOND_NS, ..SideProfile::default() };
        let nodes: Vec<NodeId> = (0..members).map(node).collect();
        let side = SideNetwork::new(side, &nodes, 7).shared();
        let devices: Vec<DeviceName> =
            profiles.iter().map(|profile| network.add_device(profile.clone())).collect();
        let limits = Limits { loss_time: LOSS_TIME, ..Limits::default() };
        let member = |(process, device): (usize, &DeviceName)| {
            let wanted = Wanted { device: device.wanted().device, ..wishes[process].clone() };
            let site = Site::open(&wanted, &limits, None).expect("a device");
            let side = SideChannel::start(&side, process);
            let fabric = RdmaViews::new(site, side).expect("descriptors");
            let context = *network.contexts(device).first().expect("it is open");
            Some(DeviceMember { fabric, rows: BTreeMap::new(), events: Vec::new(), context })
        };
        let members = devices.iter().enumerate().map(member).collect();
        Self { network, side, devices, members }
    }

    pub fn member(&mut self, process: usize) -> &mut DeviceMember {
        self.members[process].as_mut().expect("it was not killed")
    }

    /// Lets time pass, while every member polls and checks its peers whenever an event occurs.
    pub fn pass(&mut self, ns: u64) {
        const STEP_NS: u64 = 1_000;
        let end = self.network.now_ns() + ns;
        loop {
            let next = [self.network.next_at(), self.side.next_at()].into_iter().flatten().min();
            let next = next.unwrap_or(end).max(self.network.now_ns() + STEP_NS).min(end);
            self.run_until(next);
            for member in self.members.iter_mut().flatten() {
                member.fabric.check_peers();
                member.events.extend(std::iter::from_fn(|| member.fabric.poll()));
            }
            if next == end {
                return;
            }
        }
    }

    /// Carries out what is due by this time, without any member polling.
    pub fn run_until(&self, ns: u64) {
        self.network.run_until(ns);
        let mut side = self.side.borrow_mut();
        let ahead_ns = ns.saturating_sub(side.now());
        side.advance(ahead_ns);
    }

    /// Allocates memory for a view on a member.
    pub fn make(
        &mut self,
        view: ViewId,
        processes: &[usize],
        process: usize,
    ) -> Result<Rows, NoView> {
        let own = processes.iter().position(|of| *of == process).expect("a member");
        let nodes: Vec<NodeId> = processes.iter().map(|process| node(*process)).collect();
        let sizes = vec![ROW_BYTES; nodes.len()];
        let own = Rank(u16::try_from(own).expect("few"));
        let plan = ViewPlan::with_sizes(view, own, &nodes, &sizes, view.0).with_blocks();
        self.side.note_view(&plan, processes);
        self.member(process).fabric.rows(&plan)
    }

    /// Allocates memory for a view and opens it.
    pub fn try_open(
        &mut self,
        view: ViewId,
        processes: &[usize],
        process: usize,
    ) -> Result<(), NoView> {
        let rows = self.make(view, processes, process)?;
        let member = self.member(process);
        member.fabric.open(view, &rows.memory()).expect("it opens");
        member.rows.insert(view, rows);
        Ok(())
    }

    /// Opens a view on some processes, with memory on each, and gives them time to connect.
    pub fn open(&mut self, view: ViewId, processes: &[usize]) {
        for process in processes {
            self.try_open(view, processes, *process).expect("memory");
        }
        self.pass(5 * MILLISECOND_NS);
    }

    /// Returns whether all live members are ready for each other in a view.
    pub fn is_ready(&self, view: ViewId) -> bool {
        self.members.iter().flatten().all(|member| {
            let Some(rows) = member.rows.get(&view) else { return true };
            let mut ranks = (0..).map(Rank).take(rows.members().len());
            ranks.all(|rank| rank == rows.own() || member.fabric.ready(view, rank))
        })
    }

    /// Writes a value into the process's row, and posts the value to all others.
    pub fn post(&mut self, view: ViewId, process: usize, value: u64) -> Vec<Result<(), ErrorKind>> {
        let member = self.member(process);
        let rows = member.rows[&view].clone();
        rows.row().apply(64, &value.to_ne_bytes()).expect("in the row");
        let peers = (0..).map(Rank).take(rows.members().len()).filter(|rank| *rank != rows.own());
        let write = Write::of_row(64, 8, Kind::Guard);
        peers.map(|peer| member.fabric.post(view, peer, &[write], None)).collect()
    }

    /// Returns the value that a process sees in another's row.
    pub fn seen(&self, view: ViewId, process: usize, owner: Rank) -> u64 {
        let member = self.members[process].as_ref().expect("it was not killed");
        let mut bytes = [0; 8];
        member.rows[&view].rows()[owner.index()].read(64, &mut bytes).expect("in the row");
        u64::from_ne_bytes(bytes)
    }

    /// Returns whether each live member's post in a view reaches all others within `ns`.
    pub fn carries(&mut self, view: ViewId, value: u64, ns: u64) -> bool {
        let there: Vec<usize> = (0..self.members.len())
            .filter(|process| {
                let member = self.members[*process].as_ref();
                member.is_some_and(|member| member.rows.contains_key(&view))
            })
            .collect();
        let posted = there.iter().all(|process| {
            self.post(view, *process, value + *process as u64).iter().all(Result::is_ok)
        });
        self.pass(ns);
        let rank =
            |process: usize| self.members[process].as_ref().expect("it is there").rows[&view].own();
        posted
            && there.iter().all(|from| {
                there
                    .iter()
                    .filter(|to| *to != from)
                    .all(|to| self.seen(view, *to, rank(*from)) == value + *from as u64)
            })
    }

    /// Opens the next view of all live members and checks that it connects and carries writes.
    #[track_caller]
    pub fn assert_next_view(&mut self, view: ViewId) {
        let processes: Vec<usize> =
            (0..self.members.len()).filter(|process| self.members[*process].is_some()).collect();
        self.open(view, &processes);
        assert!(self.is_ready(view), "{:?}", self.losses());
        assert!(self.carries(view, 1000, MILLISECOND_NS), "{:?}", self.losses());
    }

    /// Returns the reported losses since the last call: the process, the view, the lost peer and
    /// the cause.
    pub fn losses(&mut self) -> Vec<(usize, ViewId, Rank, LossCause)> {
        let mut losses = Vec::new();
        for (process, member) in self.members.iter_mut().enumerate() {
            for event in member.iter_mut().flat_map(|member| std::mem::take(&mut member.events)) {
                if let Event::PeerLost { view, peer, cause } = event {
                    losses.push((process, view, peer, cause));
                }
            }
        }
        losses
    }

    /// Kills a process: its objects are destroyed newest first, and its peers notice later on the
    /// side channel. The process's memory is leaked.
    pub fn kill(&mut self, process: usize, step_ns: u64) {
        let member = self.members[process].take().expect("it is there");
        let (context, oldest_first) = (member.context, false);
        self.network.inject(Fault::Kill { context, oldest_first, step_ns });
        self.side.crash(process);
        // The memory of a killed process must not be freed here, because the fake device places
        // bytes there until it has destroyed everything.
        std::mem::forget(member);
    }
}
