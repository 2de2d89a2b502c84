//! Members of a group in virtual time, each with its own fake device, driven like polling threads:
//! they change views as a runtime does, and messages flow meanwhile.
//!
//! A step lasts as long as its kernel commands, so a member that waits for its device sends nothing
//! meanwhile.

use tramontane_core::fabric::{
    BlockStore as _, BlockUse, Event, Fabric as _, HostBlocks as _, HostFabric as _, Kind,
    LossCause, ViewPlan, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_fixtures::network::{
    Network as SideNetwork, SharedNetwork as SharedSideNetwork, SimFabric as SideChannel,
};
use tramontane_fixtures::profile::Profile as SideProfile;
use tramontane_fixtures::world::Hardware as _;
use tramontane_verbs::fake::{Clock, CommandKind, ContextId, DeviceName, Fault, Network, Profile};
use tramontane_verbs::{BlockMemory, Limits, RdmaViews, Rows, Site};

/// The duration of a command, in ns.
pub const MS: u64 = 1_000_000;

/// Number of steps between two checks whether the member's peers are alive.
const CHECK_EVERY: u64 = 4;

const ROW_BYTES: usize = 4096;

/// Maximum block size in bytes.
pub const BLOCK_BYTES: usize = 4096;

/// The offset at which each member writes the number of messages that it has sent.
const COUNTER: usize = 64;

/// A view on a member.
struct ChangingView {
    id: ViewId,
    rows: Rows,
    is_retired: bool,
}

/// A member.
pub struct ChangingMember {
    fabric: RdmaViews<SideChannel>,
    context: ContextId,
    /// The views of the member, oldest first.
    views: Vec<ChangingView>,
    /// The view in which the member posts.
    present: Option<ViewId>,
    sent: u64,
    steps: u64,
    /// The time at which the member's last step ends.
    busy_until: u64,
    /// Losses reported to the member.
    pub losses: Vec<(ViewId, Rank, LossCause)>,
}

/// The cost of a view change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub steps: u64,
    /// Number of steps in which the polling thread executed kernel commands.
    pub steps_with_commands: u64,
    /// Maximum number of commands in one step.
    pub commands_in_step_max: u64,
    /// Number of commands of all members, from every thread.
    pub commands: u64,
    /// The longest time during which a member sent nothing, in ns.
    pub silence_ns_max: u64,
    pub ns: u64,
}

/// All members.
pub struct ChangingGroup {
    pub network: Network,
    side: SharedSideNetwork,
    names: Vec<DeviceName>,
    pub members: Vec<Option<ChangingMember>>,
    limits: Limits,
    pub now: u64,
    /// The time from one step of a member to the next.
    pace_ns: u64,
    pub cost: Cost,
    began_at: u64,
    commands_before: u64,
    gone_commands: u64,
}

/// Returns the node of a process.
fn node(process: usize) -> NodeId {
    NodeId(u32::try_from(process).expect("few") + 10)
}

impl ChangingGroup {
    pub fn new(processes: usize, limits: &Limits, profile: impl Fn(usize) -> Profile) -> Self {
        let network = Network::new(7, Clock::Virtual);
        let names: Vec<DeviceName> =
            (0..processes).map(|process| network.add_device(profile(process))).collect();
        let side = SideProfile {
            latency_byte_ns: 20_000,
            retry_ns: 300_000,
            post_ns: 1_000,
            ..SideProfile::default()
        };
        let nodes: Vec<NodeId> = (0..processes).map(node).collect();
        let side = SideNetwork::new(side, &nodes, 7).shared();
        let mut group = Self {
            network,
            side,
            names,
            members: Vec::new(),
            limits: limits.clone(),
            now: 0,
            // A small group can be observed in finer steps.
            pace_ns: if processes > 8 { 4 * MS } else { MS / 4 },
            cost: Cost::default(),
            began_at: 0,
            commands_before: 0,
            gone_commands: 0,
        };
        group.members = (0..processes).map(|process| Some(group.start(process))).collect();
        group
    }

    fn start(&self, process: usize) -> ChangingMember {
        let name = &self.names[process];
        let site = Site::open(&name.wanted(), &self.limits, None).expect("the device is there");
        let context = *self.network.contexts(name).last().expect("it is open");
        let side = SideChannel::start(&self.side, process);
        let fabric = RdmaViews::new(site, side).expect("descriptors");
        let _ = self.network.take_command_ns(context);
        ChangingMember {
            fabric,
            context,
            views: Vec::new(),
            present: None,
            sent: 0,
            steps: 0,
            busy_until: 0,
            losses: Vec::new(),
        }
    }

    fn commands(&self) -> u64 {
        let of = |member: &ChangingMember| -> u64 {
            self.network.commands(member.context).iter().map(|count| count.count).sum()
        };
        self.gone_commands + self.members.iter().flatten().map(of).sum::<u64>()
    }

    /// Resets the counts.
    pub fn begin_to_count(&mut self) {
        (self.cost, self.began_at) = (Cost::default(), self.now);
        self.commands_before = self.commands();
    }

    /// Returns the counted cost.
    pub fn count(&mut self) -> Cost {
        self.cost.commands = self.commands() - self.commands_before;
        self.cost.ns = self.now - self.began_at;
        self.cost
    }

    /// Does work in one step of a member, in addition to its usual work, and counts its kernel
    /// commands.
    fn in_step<R>(
        &mut self,
        process: usize,
        work: impl FnOnce(&mut ChangingMember) -> R,
    ) -> Option<R> {
        let member = self.members[process].as_mut()?;
        if member.busy_until > self.now {
            return None;
        }
        self.side.begin_step(process, self.now);
        let result = work(member);
        let _ = self.side.end_step(process, 0, 100);
        let ns = self.network.take_command_ns(member.context);
        let commands = ns / MS;
        member.busy_until = self.now + ns;
        self.cost.steps += 1;
        self.cost.steps_with_commands += u64::from(ns > 0);
        self.cost.commands_in_step_max = self.cost.commands_in_step_max.max(commands);
        self.cost.silence_ns_max = self.cost.silence_ns_max.max(ns);
        Some(result)
    }

    /// Lets every member that is not busy take its step.
    pub fn round(&mut self) {
        for process in 0..self.members.len() {
            self.in_step(process, ChangingMember::step);
        }
        let until = self.now + self.pace_ns;
        while self.now < until {
            let next = [self.side.next_at(), self.network.next_at()];
            let next = next.into_iter().flatten().min().unwrap_or(until);
            self.now = next.clamp(self.now, until);
            let _ = self.side.run_until(self.now);
            self.network.run_until(self.now);
            if next >= until {
                self.now = until;
            }
        }
        let _ = self.side.run_until(self.now);
        self.network.run_until(self.now);
    }

    /// Runs rounds until a condition holds.
    #[track_caller]
    pub fn until(&mut self, what: &str, most_ns: u64, mut holds: impl FnMut(&mut Self) -> bool) {
        let limit = self.now + most_ns;
        while !holds(self) {
            assert!(self.now < limit, "{what} did not come within {most_ns} ns");
            self.round();
        }
    }

    /// Prepares a view on these members, each in its own step.
    pub fn prepare(&mut self, id: u64, processes: &[usize]) {
        let (id, members): (_, Vec<NodeId>) =
            (ViewId(id), processes.iter().map(|process| node(*process)).collect());
        let row_bytes = vec![ROW_BYTES; members.len()];
        for (own, process) in (0..).map(Rank).zip(processes) {
            let plan = ViewPlan::with_sizes(id, own, &members, &row_bytes, 7).with_blocks();
            self.side.note_view(&plan, processes);
            let is_there = self.members[*process].is_some();
            let mut is_prepared = !is_there;
            while !is_prepared {
                is_prepared = self.in_step(*process, |member| member.prepare(&plan)).is_some();
                if !is_prepared {
                    self.round();
                }
            }
        }
    }

    /// Returns whether all live members are ready for each other in a view.
    pub fn is_ready(&self, id: u64, processes: &[usize]) -> bool {
        let there = |process: &&usize| self.members[**process].is_some();
        let peers: Vec<&usize> = processes.iter().filter(there).collect();
        peers.iter().all(|process| self.is_ready_at(**process, id, processes))
    }

    /// Returns whether one member is ready for all other live members.
    pub fn is_ready_at(&self, process: usize, id: u64, processes: &[usize]) -> bool {
        let Some(member) = &self.members[process] else { return true };
        (0..).map(Rank).zip(processes).all(|(rank, peer)| {
            *peer == process
                || self.members[*peer].is_none()
                || member.fabric.ready(ViewId(id), rank)
        })
    }

    /// Returns whether two members are ready for each other.
    pub fn are_ready(&self, id: u64, processes: &[usize], pair: [usize; 2]) -> bool {
        let rank = |process: usize| {
            let at = processes.iter().position(|other| *other == process).expect("a member");
            Rank(u16::try_from(at).expect("few"))
        };
        [pair, [pair[1], pair[0]]].into_iter().all(|[one, other]| {
            let member = self.members[one].as_ref().expect("it is there");
            member.fabric.ready(ViewId(id), rank(other))
        })
    }

    /// Makes members post in a view from then on.
    pub fn go_on_in(&mut self, id: u64, processes: &[usize]) {
        for process in processes {
            if let Some(member) = &mut self.members[*process] {
                member.present = Some(ViewId(id));
            }
        }
    }

    /// Gives up, on all members, a view in which no member was ready.
    pub fn give_up(&mut self, id: u64) {
        for process in 0..self.members.len() {
            while self.members[process].as_ref().is_some_and(|it| it.busy_until > self.now) {
                self.round();
            }
            self.in_step(process, |member| {
                let _ = member.fabric.retire(ViewId(id));
                member.views.retain(|view| view.id != ViewId(id));
            });
        }
    }

    /// Ends a view on all members.
    pub fn retire(&mut self, id: u64) {
        self.until("the end of a view", 20_000 * MS, |group| {
            let mut is_over = true;
            for process in 0..group.members.len() {
                let retired = group.in_step(process, |member| member.retire(ViewId(id)));
                is_over &= group.members[process].is_none() || retired.unwrap_or(false);
            }
            is_over
        });
    }

    /// Kills a process: its kernel destroys its objects, and its peers notice.
    pub fn kill(&mut self, process: usize) {
        let Some(member) = self.members[process].take() else { return };
        self.gone_commands +=
            self.network.commands(member.context).iter().map(|count| count.count).sum::<u64>();
        let context = member.context;
        self.network.inject(Fault::Kill { context, oldest_first: true, step_ns: 2_000 });
        self.side.crash(process);
        drop(member);
    }

    /// Makes a member leave in an orderly way.
    pub fn leave(&mut self, process: usize) {
        let Some(mut member) = self.members[process].take() else { return };
        self.gone_commands +=
            self.network.commands(member.context).iter().map(|count| count.count).sum::<u64>();
        self.side.begin_step(process, self.now);
        member.fabric.leave();
        let _ = self.side.end_step(process, 0, 100);
        drop(member);
    }

    /// Cuts lost peers on all members, as a node does with a member that it suspects.
    pub fn cut_who_was_lost(&mut self) {
        for process in 0..self.members.len() {
            self.in_step(process, ChangingMember::cut_who_was_lost);
        }
    }

    /// Makes a member cut the peer with a given rank.
    pub fn cut(&mut self, process: usize, id: u64, peer: u16) {
        let cut = |member: &mut ChangingMember| member.fabric.cut(ViewId(id), Rank(peer));
        self.until("a step", 1000 * MS, |group| group.in_step(process, cut).is_some());
    }

    /// Allocates block memory on a member and uses it immediately, in one step.
    pub fn with_blocks(
        &mut self,
        process: usize,
        work: impl FnOnce(&mut RdmaViews<SideChannel>, BlockMemory),
    ) {
        let member = self.members[process].as_mut().expect("it is there");
        let memory = member.fabric.block_store().memory(BLOCK_BYTES, BlockUse::Both);
        let _ = self.network.take_command_ns(member.context);
        self.in_step(process, |member| work(&mut member.fabric, memory.expect("memory")));
    }

    /// Makes a member do nothing for a while.
    pub fn pause(&mut self, process: usize, ns: u64) {
        let member = self.members[process].as_mut().expect("it is there");
        member.busy_until = member.busy_until.max(self.now + ns);
    }

    /// Makes a member's device fail.
    pub fn fail_device(&mut self, process: usize) {
        self.network.inject(Fault::DeviceFatal(self.names[process].clone()));
    }

    /// Returns what a member sees of a peer's messages.
    pub fn seen(&self, process: usize, id: u64, peer: usize) -> u64 {
        let member = self.members[process].as_ref().expect("it is there");
        let view = member.views.iter().find(|view| view.id == ViewId(id)).expect("it is there");
        view.rows.rows()[peer].cell(COUNTER).expect("in the row").load()
    }

    /// Returns the number of commands of a kind that a member's process has executed.
    pub fn commands_of(&self, process: usize, kind: CommandKind) -> u64 {
        let member = self.members[process].as_ref().expect("it is there");
        let counts = self.network.commands(member.context);
        counts.iter().filter(|count| count.kind == kind).map(|count| count.count).sum()
    }

    /// Ends all members.
    pub fn end(&mut self) {
        self.members.clear();
    }

    /// Checks that the messages of a view from each member arrive at all other members.
    #[track_caller]
    pub fn assert_carried(&mut self, id: u64, processes: &[usize]) {
        let sent: Vec<Option<u64>> = processes
            .iter()
            .map(|process| self.members[*process].as_ref().map(|member| member.sent))
            .collect();
        self.until("what was sent", 5_000 * MS, |group| {
            processes.iter().all(|process| {
                let Some(member) = &group.members[*process] else { return true };
                let view = member.views.iter().find(|view| view.id == ViewId(id));
                let rows = view.expect("it is there").rows.clone();
                rows.rows().iter().zip(&sent).enumerate().all(|(rank, (row, sent))| {
                    let seen = row.cell(COUNTER).expect("in the row").load();
                    Rank(u16::try_from(rank).expect("few")) == rows.own()
                        || sent.is_none_or(|sent| seen >= sent)
                })
            })
        });
    }
}

impl ChangingMember {
    /// Does the usual work: processes events and sends messages.
    fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(CHECK_EVERY) {
            self.fabric.check_peers();
        }
        while let Some(event) = self.fabric.poll() {
            if let Event::PeerLost { view, peer, cause } = event {
                self.losses.push((view, peer, cause));
            }
        }
        let Some(present) = self.present else { return };
        let Some(view) = self.views.iter().find(|view| view.id == present) else { return };
        self.sent += 1;
        view.rows.row().cell(COUNTER).expect("in the row").publish(self.sent);
        // Sends to the member's neighbour, and to all others in turn.
        let members = u64::try_from(view.rows.members().len()).expect("few");
        for ahead in [1, 1 + self.sent % (members - 1)] {
            let peer = (u64::from(view.rows.own().0) + ahead) % members;
            let peer = Rank(u16::try_from(peer).expect("few"));
            // If the queue is full or a peer is gone, a later message carries the count too.
            let write = Write::of_row(COUNTER, 8, Kind::Guard);
            let _ = self.fabric.post(present, peer, &[write], None);
        }
    }

    /// Returns whether a loss in this view has been reported to the member.
    pub fn is_told_of_loss(&self, id: u64) -> bool {
        self.losses.iter().any(|(view, ..)| *view == ViewId(id))
    }

    /// Returns whether each loss was reported once.
    pub fn was_told_once(&self) -> bool {
        let mut told: Vec<(ViewId, Rank)> =
            self.losses.iter().map(|(view, peer, _)| (*view, *peer)).collect();
        told.sort_unstable();
        told.windows(2).all(|pair| pair[0] != pair[1])
    }

    fn prepare(&mut self, plan: &ViewPlan<'_>) {
        let rows = self.fabric.rows(plan).expect("memory");
        self.fabric.open(plan.view(), &rows.memory()).expect("it opens");
        self.views.push(ChangingView { id: plan.view(), rows, is_retired: false });
    }

    fn retire(&mut self, id: ViewId) -> bool {
        let Some(view) = self.views.iter_mut().find(|view| view.id == id) else { return true };
        if !view.is_retired {
            view.is_retired = self.fabric.retire(id);
        }
        view.is_retired
    }

    fn cut_who_was_lost(&mut self) {
        for (view, peer, _) in self.losses.clone() {
            self.fabric.cut(view, peer);
        }
    }
}
