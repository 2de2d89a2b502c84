//! Devices and side channels of all processes, for the simulated world.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tramontane_core::fabric::ViewPlan;
use tramontane_fixtures::network::{
    Network as SideNetwork, SharedNetwork as SharedSideNetwork, SimFabric as SideChannel,
};
use tramontane_fixtures::plan::Fault;
use tramontane_fixtures::profile::Profile as SideProfile;
use tramontane_fixtures::random::Random;
use tramontane_fixtures::world::{Hardware, Plan};
use tramontane_verbs::devices::{GidKind, LinkLayer};
use tramontane_verbs::fake::{
    self, Clock, ContextId, DeviceName, GidEntry, Network, PortProfile, Profile,
};
use tramontane_verbs::{Limits, RdmaViews, Site};

use crate::device::Devices;
use crate::faults::{DeviceFault, Faults, MemberFault};
use crate::links::{LinkChange, NEVER, Troubles};

/// The port that all devices use.
const PORT: u8 = 1;

/// The table entry in use on Ethernet, and one that is empty.
const IN_USE: u8 = 1;
const EMPTY: u8 = 2;

/// A device for each process, on one network, and their side channels.
pub struct RdmaHardware {
    devices: Devices,
    faults: Faults,
    /// The faults that have occurred.
    struck: RefCell<BTreeSet<MemberFault>>,
    /// Devices that have failed, by process.
    failed: RefCell<BTreeSet<usize>>,
    /// Devices that will return, and when.
    returns: RefCell<Vec<(u64, usize)>>,
    network: Network,
    side: SharedSideNetwork,
    /// The device of each process.
    names: Vec<DeviceName>,
    contexts: RefCell<Vec<Option<ContextId>>>,
    is_gone: RefCell<Vec<bool>>,
    troubles: RefCell<Troubles>,
    random: RefCell<Random>,
    now: Cell<u64>,
    changed_at: Cell<u64>,
    rung: RefCell<Vec<usize>>,
}

impl RdmaHardware {
    pub fn new(plan: &Plan, devices: Devices, faults: Faults) -> Self {
        let processes = plan.processes();
        let network = Network::new(plan.seed, Clock::Virtual);
        let add = |process| network.add_device(with_addresses(&devices.profile, process));
        let names: Vec<DeviceName> = (0..processes).map(add).collect();
        for fault in faults.harmless() {
            let process = plan.members.iter().position(|node| *node == fault.node);
            if let Some(name) = process.and_then(|process| names.get(process)) {
                network.inject_at(fault.at, fake::Fault::Pkey(name.clone(), PORT));
            }
        }
        let harmless = faults.harmless().map(|fault| fault.kind).collect();
        // The side channel's ordinary network is slower than the device.
        let side = SideProfile {
            latency_byte_ns: 5 * devices.profile.latency_ns,
            jitter_ns: devices.profile.latency_ns,
            retry_ns: plan.profile.retry_ns,
            post_ns: 1_000,
            ..SideProfile::default()
        };
        Self {
            network,
            side: SideNetwork::new(side, &plan.process_nodes(), plan.seed).shared(),
            names,
            contexts: RefCell::new(vec![None; processes]),
            is_gone: RefCell::new(vec![false; processes]),
            troubles: RefCell::default(),
            random: RefCell::new(Random::stream(plan.seed, "faults of devices")),
            now: Cell::new(0),
            changed_at: Cell::new(0),
            rung: RefCell::default(),
            faults,
            struck: RefCell::new(harmless),
            failed: RefCell::default(),
            returns: RefCell::default(),
            devices,
        }
    }

    /// Creates the fabric of a process.
    pub fn fabric_of(&self, process: usize) -> RdmaViews<SideChannel> {
        let name = &self.names[process];
        let loss_time = Duration::from_millis(self.devices.loss_time_ms);
        let limits = Limits { loss_time, ..Limits::default() };
        let site = Site::open(&name.wanted(), &limits, None).expect("the network has the device");
        self.contexts.borrow_mut()[process] = self.network.contexts(name).last().copied();
        let side = SideChannel::start(&self.side, process);
        RdmaViews::new(site, side).expect("descriptors")
    }

    /// Returns the event counts of the devices.
    pub fn counts(&self) -> fake::Counts {
        self.network.counts()
    }

    /// Returns the device faults that have occurred.
    pub fn struck(&self) -> BTreeSet<MemberFault> {
        self.struck.borrow().clone()
    }

    /// Returns whether a complaint is only that a failed device provides no memory.
    pub fn is_excused(&self, complaint: &str) -> bool {
        let failed = self.failed.borrow();
        complaint.starts_with("memory:")
            && failed.iter().any(|process| complaint.contains(self.names[*process].as_str()))
    }

    fn change(&self, (from, to, link): LinkChange) {
        let (from, to) = (self.names[from].clone(), self.names[to].clone());
        self.network.inject(fake::Fault::Link { from, to, link });
    }

    fn advance(&self, until: u64) {
        loop {
            let ends = self.troubles.borrow().next_end();
            let next = [self.side.next_at(), self.network.next_at(), ends, self.next_return()];
            let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= until) else {
                break;
            };
            let at = at.max(self.now.get());
            self.run_both(at);
            self.changed_at.set(at);
            let changes = self.troubles.borrow_mut().end(at);
            changes.into_iter().for_each(|change| self.change(change));
            self.returns.borrow_mut().retain(|(due, process)| {
                if *due <= at {
                    self.network.bring_back(&self.names[*process]);
                }
                *due > at
            });
        }
        self.run_both(until.max(self.now.get()));
    }

    fn run_both(&self, at: u64) {
        self.rung.borrow_mut().extend(self.side.run_until(at));
        self.network.run_until(at);
        self.now.set(at);
    }

    fn next_return(&self) -> Option<u64> {
        self.returns.borrow().iter().map(|(at, _)| *at).min()
    }

    /// Returns the pairs of processes of which exactly one is on this side.
    fn across(&self, side: &[usize]) -> Vec<(usize, usize)> {
        let all = 0..self.names.len();
        let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
        pairs.filter(|(from, to)| side.contains(from) != side.contains(to)).collect()
    }

    fn cut(&self, pairs: &[(usize, usize)], until: u64) {
        for pair in pairs {
            let change = self.troubles.borrow_mut().cut(*pair, until);
            self.change(change);
        }
    }

    /// Cuts both networks, or only the devices' network, or lets one member's port go down and come
    /// back.
    fn part(&self, fault: &Fault, side: &[usize], lasting: u64) {
        let until = self.now.get() + lasting;
        match (self.random.borrow_mut().below(4), side) {
            (0, [member]) => {
                let name = &self.names[*member];
                self.network.inject(fake::Fault::PortDown(name.clone(), PORT));
                self.network.inject_at(until, fake::Fault::PortUp(name.clone(), PORT));
            }
            (0 | 1, _) => self.cut(&self.across(side), until),
            _ => {
                self.side.begin_fault(fault);
                self.cut(&self.across(side), until);
            }
        }
    }

    /// Injects a fault into the device of the last live process among these.
    fn strike(&self, fault: &DeviceFault, processes: &[usize]) {
        let is_there = |process: &&usize| !self.is_gone.borrow()[**process];
        let Some(&process) = processes.iter().rfind(is_there) else { return };
        let name = || self.names[process].clone();
        let (now, until) = (self.now.get(), self.now.get() + fault.lasting);
        let inject = |fault| self.network.inject(fault);
        self.struck.borrow_mut().insert(fault.kind);
        match fault.kind {
            MemberFault::PortFlaps => {
                inject(fake::Fault::PortDown(name(), PORT));
                self.network.inject_at(until, fake::Fault::PortUp(name(), PORT));
            }
            MemberFault::DeviceFails
            | MemberFault::DeviceSaysThatItFailed
            | MemberFault::DeviceComesBack => {
                self.failed.borrow_mut().insert(process);
                match fault.kind {
                    MemberFault::DeviceSaysThatItFailed => self.network.announce_failure(&name()),
                    _ => inject(fake::Fault::DeviceFatal(name())),
                }
                if fault.kind == MemberFault::DeviceComesBack {
                    self.returns.borrow_mut().push((until, process));
                }
            }
            MemberFault::AddressReplaced => {
                self.set_address(name(), IN_USE, address_of(process, 200))
            }
            MemberFault::AddressMoved => {
                self.set_address(name(), EMPTY, address_of(process, 64));
                self.set_address(name(), IN_USE, Ipv6Addr::UNSPECIFIED);
            }
            MemberFault::LidChanges => {
                let lid = 0x4000 + u16::try_from(process).unwrap_or(0);
                inject(fake::Fault::Lid(name(), PORT, lid));
            }
            MemberFault::PacketsShorter => inject(fake::Fault::Mtu(name(), PORT, 256)),
            MemberFault::PartitionKeysChange => inject(fake::Fault::Pkey(name(), PORT)),
            MemberFault::QueueOverrun | MemberFault::QueueSaidToFail => {
                self.fail_queue(fault.kind, &name())
            }
            MemberFault::CutOneWay => {
                let others = || (0..self.names.len()).filter(|other| *other != process);
                let one = others().nth(self.random.borrow_mut().index(self.names.len() - 1));
                let is_to_all = self.random.borrow_mut().chance(50);
                let ways: Vec<_> = others()
                    .filter(|other| is_to_all || Some(*other) == one)
                    .map(|other| (process, other))
                    .collect();
                self.cut(&ways, until);
            }
            MemberFault::Loss => {
                let per_million = *self.random.borrow_mut().pick(&[1_000, 20_000]).expect("two");
                let all = || 0..self.names.len();
                for way in all().flat_map(|from| all().map(move |to| (from, to))) {
                    let change = self.troubles.borrow_mut().lose(way, until, per_million);
                    self.change(change);
                }
            }
        }
        self.changed_at.set(now);
    }

    fn set_address(&self, device: DeviceName, index: u8, address: Ipv6Addr) {
        self.network.inject(fake::Fault::Gid { device, port: PORT, index, address });
    }

    /// Fails one of the open completion queues of its process.
    fn fail_queue(&self, kind: MemberFault, name: &DeviceName) {
        const QUEUES: u64 = 2;
        let Some(context) = self.network.contexts(name).last().copied() else { return };
        let index = usize::try_from(self.random.borrow_mut().below(QUEUES)).unwrap_or(0);
        if kind == MemberFault::QueueOverrun {
            self.network.overrun(context, index);
        } else {
            self.network.announce_queue_failure(context, index);
        }
    }
}

/// Returns a process's address in a network.
fn address_of(process: usize, network: u8) -> Ipv6Addr {
    let [high, low] = u16::try_from(process).unwrap_or(u16::MAX).to_be_bytes();
    Ipv4Addr::new(10, network, high, low).to_ipv6_mapped()
}

/// Adds a process's addresses to a profile. On Ethernet, its address table has an empty entry.
fn with_addresses(profile: &Profile, process: usize) -> Profile {
    let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, u16::try_from(process).unwrap_or(0));
    let kind = GidKind::RoceV2;
    let gids = vec![
        GidEntry { address: local, kind, is_routed: false },
        GidEntry { address: address_of(process, 64), kind, is_routed: true },
        GidEntry { address: Ipv6Addr::UNSPECIFIED, kind, is_routed: true },
    ];
    let port = |port: &PortProfile| match port.link_layer {
        LinkLayer::Ethernet => PortProfile { gids: gids.clone(), ..port.clone() },
        LinkLayer::InfiniBand => port.clone(),
    };
    Profile { ports: profile.ports.iter().map(port).collect(), ..profile.clone() }
}

impl Hardware for RdmaHardware {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn next_at(&self) -> Option<u64> {
        let ends = self.troubles.borrow().next_end();
        let next = [self.side.next_at(), self.network.next_at(), ends, self.next_return()];
        next.into_iter().flatten().min()
    }

    fn run_until(&self, until: u64) -> Vec<usize> {
        self.advance(until);
        self.rung.take()
    }

    fn changed_at(&self) -> u64 {
        self.changed_at.get()
    }

    fn is_busy(&self) -> bool {
        self.side.is_busy() || self.network.next_at().is_some()
    }

    fn note_view(&self, plan: &ViewPlan<'_>, processes: &[usize]) {
        self.side.note_view(plan, processes);
    }

    fn begin_step(&self, process: usize, now: u64) {
        self.advance(now);
        self.side.begin_step(process, now);
    }

    fn end_step(&self, process: usize, compute_ns: u64, cpu_percent: u64) -> u64 {
        let context = self.contexts.borrow()[process];
        let commands_ns = context.map_or(0, |context| self.network.take_command_ns(context));
        self.side.end_step(process, compute_ns + commands_ns, cpu_percent)
    }

    fn begin_fault(&self, fault: &Fault) {
        match fault {
            Fault::Partition { side, at, lasting } => match self.faults.at(*at) {
                Some(of_device) => self.strike(of_device, side),
                None => self.part(fault, side, *lasting),
            },
            Fault::SlowLink { member, peer, lasting, late_ns, .. } => {
                let until = self.now.get() + lasting;
                let change = self.troubles.borrow_mut().slow((*member, *peer), until, *late_ns);
                self.change(change);
                self.side.begin_fault(fault);
            }
            // A device's queues cannot be made to appear full.
            Fault::QueueFull { .. } => self.side.begin_fault(fault),
            Fault::Crash { member, .. } => self.crash(*member),
            Fault::Pause { .. } | Fault::Slow { .. } => {}
        }
    }

    fn crash(&self, process: usize) {
        if std::mem::replace(&mut self.is_gone.borrow_mut()[process], true) {
            return;
        }
        self.side.crash(process);
        if self.random.borrow_mut().chance(self.devices.host_percent) {
            return self.cut(&self.across(&[process]), NEVER);
        }
        let step_ns = self.devices.destroy_step_ns;
        let oldest_first = self.random.borrow_mut().chance(self.devices.oldest_first_percent);
        for context in self.network.contexts(&self.names[process]) {
            self.network.inject(fake::Fault::Kill { context, oldest_first, step_ns });
        }
    }
}
