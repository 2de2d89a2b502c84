//! Options and their effect on a device that deviates in permitted ways: timeouts, first writes,
//! memory limits, networks. The tests use fake devices in virtual time, except for members that
//! meet over TCP.

#[path = "options/memory.rs"]
mod memory;
#[path = "options/networks.rs"]
mod networks;
#[path = "options/probe.rs"]
mod probe;
#[path = "options/regions.rs"]
mod regions;
#[path = "options/timing.rs"]
mod timing;

mod group;

use group::VIEW;
use tramontane_core::fabric::{Fabric as _, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_verbs::devices::Wanted;
use tramontane_verbs::fake::{Clock, DeviceName, Network, Profile};
use tramontane_verbs::{JoinError, Limits, Loss, Report, Site, Verbs, ViewOptions};

const A: Rank = Rank(0);
const B: Rank = Rank(1);
const MEMBERS: [NodeId; 2] = [NodeId(10), NodeId(11)];

/// Size in bytes of a row that ends within a cache line and is shorter than a packet.
const ROW_BYTES: usize = 1_000;

const SECOND_NS: u64 = 1_000_000_000;

/// Two members, each on its own device.
struct Two {
    network: Network,
    devices: [DeviceName; 2],
    fabrics: [Verbs; 2],
    report: Report,
}

/// The configuration of the two members.
#[derive(Clone, Debug, Default)]
struct PairShape {
    seed: u64,
    profiles: [Profile; 2],
    /// The constraints on each device, apart from its name.
    wanted: [Wanted; 2],
    limits: Limits,
    blocks: bool,
}

/// Opens a member's view without connections.
fn alone(site: &Site, own: Rank, blocks: bool) -> Result<Verbs, JoinError> {
    let mut fabric = site.view(&ViewOptions {
        view: VIEW,
        own,
        members: &MEMBERS,
        row_bytes: &[ROW_BYTES; 2],
        relayed: &[],
        regions: &[],
        blocks,
    })?;
    let rows = fabric.rows().clone();
    fabric.open(VIEW, &rows.memory()).expect("it opens");
    Ok(fabric)
}

impl Two {
    /// Creates both members, neither of which has the other's card.
    fn new(shape: &PairShape) -> Self {
        let network = Network::new(shape.seed, Clock::Virtual);
        let devices = shape.profiles.clone().map(|profile| network.add_device(profile));
        let site = |index: usize| {
            let wanted =
                Wanted { device: devices[index].wanted().device, ..shape.wanted[index].clone() };
            Site::open(&wanted, &shape.limits, None).expect("a device")
        };
        let sites = [site(0), site(1)];
        let fabrics = [(0, A), (1, B)].map(|(index, own): (usize, Rank)| {
            alone(&sites[index], own, shape.blocks).expect("memory")
        });
        let report = sites[0].report();
        Self { network, devices, fabrics, report }
    }

    /// Shows each member the other's card. Returns whether each accepted it.
    fn connect(&mut self) -> [bool; 2] {
        let [a, b] = &mut self.fabrics;
        let (of_a, of_b) = (a.card_for(B), b.card_for(A));
        [a.connect(B, &of_b), b.connect(A, &of_a)]
    }

    /// Admits both members, so that they try their first writes.
    fn admit(&mut self) {
        assert_eq!(self.connect(), [true, true]);
        self.fabrics[0].admit(B);
        self.fabrics[1].admit(A);
    }

    /// Carries out all events, for at most the given time.
    fn run_for(&mut self, ns: u64) {
        let until = self.network.now_ns().saturating_add(ns);
        while let Some(at) = self.network.next_at().filter(|at| *at <= until) {
            self.network.run_until(at);
            self.fabrics.iter_mut().for_each(Verbs::collect);
        }
        self.network.run_until(until);
        self.fabrics.iter_mut().for_each(Verbs::collect);
    }

    /// Runs until the first member learns of the second's loss.
    fn run_until_lost(&mut self, ns: u64) -> Loss {
        let until = self.network.now_ns().saturating_add(ns);
        while self.fabrics[0].loss_of(B).is_none() {
            let at = self.network.next_at().expect("something is to happen");
            assert!(at <= until, "not lost by {at}");
            self.network.run_until(at);
            self.fabrics[0].collect();
        }
        *self.fabrics[0].loss_of(B).expect("it is lost")
    }

    /// Returns whether the first member is ready for the second, and vice versa.
    fn ready(&self) -> [bool; 2] {
        [self.fabrics[0].ready(VIEW, B), self.fabrics[1].ready(VIEW, A)]
    }

    /// Sets the properties of the path from the first member to the second.
    fn link(&self, link: tramontane_verbs::fake::Link) {
        let [from, to] = self.devices.clone();
        self.network.inject(tramontane_verbs::fake::Fault::Link { from, to, link });
    }
}
