//! Messages to several groups (TRAM 8): TRAM over its trees, and the protocols with which it is
//! compared. Each case is a run of one system under load.

use serde::Deserialize;
use tramontane_core::tram::{Answers, Limits};
use tramontane_fixtures::baselines::{ProcessOptions, Protocol, Simulation};
use tramontane_fixtures::shards::{
    Load, Measured, Pattern, Schedule, Sharded, TramOptions, TramSimulation, TramState, Workload,
};

use super::figures::Figures;
use super::machines::Machines;
use super::tree::Tree;
use crate::error::BenchError;

/// The machine of the paper. For message-based protocols, the same machine with the kernel's TCP.
pub(super) const MACHINE: &str = "r320_fdr";
const MESSAGES_MACHINE: &str = "r320_tcp";

/// Number of groups of the trees of eight.
pub(super) const GROUPS: u32 = 8;

/// A protocol under measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum System {
    Tram,
    RamCast,
    /// Message-based, and not replicated.
    Skeen,
    /// Message-based and not replicated, with crash faults. The paper runs it on the base tree
    /// (8.6).
    ByzCast,
}

/// This project's extensions of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Variant {
    /// The protocol as in its paper.
    Paper,
    /// Messages are passed on while they are being replicated.
    Early,
    /// Each step takes everything that is available.
    Batching,
    /// Messages are passed on only to the leaders of children.
    Leaders,
    /// Uses all three extensions.
    All,
    /// All three extensions, and entries refer to large payloads, which clients write to all
    /// replicas (TRM-9).
    References,
}

/// The number of clients, each with one message at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Demand {
    /// One client: latency without queues.
    Low,
    /// Enough clients to saturate a leader.
    Saturating,
}

/// A run of one system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Ordered {
    system: System,
    tree: Tree,
    variant: Variant,
    demand: Demand,
    /// Whether messages go to groups that are adjacent in the tree.
    adjacent: bool,
    destinations: u32,
    payload_bytes: u32,
    /// Number of replicas of each group.
    replicas: u16,
}

/// The default case is one client that sends messages of 64 bytes to random groups.
impl Default for Ordered {
    fn default() -> Self {
        Self {
            system: System::Tram,
            tree: Tree::Base,
            variant: Variant::Paper,
            demand: Demand::Low,
            adjacent: false,
            destinations: GROUPS,
            payload_bytes: 64,
            replicas: 3,
        }
    }
}

/// Maximum size, in bytes, of the rings and logs in a run. Large messages get fewer entries.
const RING_BYTES: u32 = 2 << 20;

/// Maximum size, in bytes, of a message that does not count as large. With larger ones, fewer
/// clients saturate the ports.
const SMALL_BYTES: u32 = 1 << 10;

/// Payload size, in bytes, from which entries refer to payloads if references are enabled.
const REFERENCES_FROM: u32 = 4 << 10;

/// Suspicion time if large messages fill the ports, in ns.
const SUSPECT_LARGE_NS: u64 = 20_000_000;

/// Maximum time between two idle steps of a replica, in ns. A replica polls because reading the
/// counts of others in one step may cause work some steps later, which no step reports.
pub(super) const IDLE_NS: u64 = 500;

impl Ordered {
    /// Returns the case in a canonical form. With one group or all of them, both patterns draw the
    /// same groups, so such a case is run once.
    pub(super) fn drawn(self) -> Self {
        Self { adjacent: self.adjacent && (2..GROUPS).contains(&self.destinations), ..self }
    }

    /// Returns the number of clients.
    const fn clients(&self) -> u16 {
        match (self.demand, self.payload_bytes) {
            (Demand::Low, _) => 1,
            (Demand::Saturating, ..=SMALL_BYTES) => 48,
            (Demand::Saturating, _) => 24,
        }
    }

    /// Returns the time after which a silent replica is suspected. A heartbeat waits until
    /// everything that its replica has posted has been sent, which takes several milliseconds with
    /// all clients' large messages.
    fn suspect_ns(&self) -> u64 {
        match (self.demand, self.payload_bytes) {
            (Demand::Saturating, bytes) if bytes > SMALL_BYTES => SUSPECT_LARGE_NS,
            _ => TramOptions::default().suspect_ns,
        }
    }

    /// Returns the limits of the overlay.
    fn limits(&self) -> Limits {
        let slots = |most: u32| (RING_BYTES / self.payload_bytes.max(1)).clamp(32, most);
        Limits {
            clients: self.clients(),
            log_entries: slots(512),
            client_window: 2,
            parent_window: slots(256),
            payload_max: self.payload_bytes,
        }
    }

    /// Excludes the time before all clients are working from the measurement.
    fn schedule(&self) -> Schedule {
        let clients = usize::from(self.clients());
        let (warm_up, measured) = match self.demand {
            Demand::Low => (10, 60),
            Demand::Saturating if self.payload_bytes > SMALL_BYTES => (clients, 2 * clients),
            Demand::Saturating => (clients, 4 * clients),
        };
        let answers = Answers::Leaders;
        Schedule { clients: self.clients(), answers, warm_up, measured, idle_ns: IDLE_NS }
    }

    /// Runs the case.
    ///
    /// # Errors
    /// Fails with [`BenchError`] if there is no such overlay.
    pub(super) fn run(&self, machines: &Machines, seed: u64) -> Result<Figures, BenchError> {
        let protocol = match self.system {
            System::Tram => None,
            System::RamCast => Some(Protocol::RamCast),
            System::Skeen => Some(Protocol::Skeen),
            System::ByzCast => Some(Protocol::ByzCast),
        };
        let is_replicated = protocol.is_none_or(Protocol::is_replicated);
        let machine = if is_replicated { MACHINE } else { MESSAGES_MACHINE };
        let profile = machines.named(machine)?.clone();
        let overlay = self.tree.overlay(self.replicas, self.limits())?;
        let is = |variant| {
            self.variant == variant || matches!(self.variant, Variant::All | Variant::References)
        };
        let measured = if let Some(protocol) = protocol {
            let options = ProcessOptions { protocol, batching: is(Variant::Batching) };
            let simulation = Simulation::new(&overlay, options, profile, seed);
            self.load(Load::new(simulation, &overlay, seed))
        } else {
            let overlay = match self.variant {
                Variant::References => overlay.with_references(REFERENCES_FROM),
                _ => overlay,
            };
            let mut state = TramState::new(&overlay);
            let options = TramOptions {
                batching: is(Variant::Batching),
                passes_on_early: is(Variant::Early),
                serves_leaders_alone: is(Variant::Leaders),
                suspect_ns: self.suspect_ns(),
                ..TramOptions::default()
            };
            let tram = TramSimulation::new(&overlay, &mut state, options, profile, seed);
            self.load(Load::new(tram, &overlay, seed))
        };
        Ok(Figures::from([
            ("latency_us", measured.mean_ns() / 1e3),
            ("messages_per_s", measured.messages_per_s()),
        ]))
    }

    fn load(&self, mut load: Load<'_, impl Sharded>) -> Measured {
        load.elect();
        let pattern = if self.adjacent { Pattern::Adjacent } else { Pattern::Random };
        let payload_bytes = self.payload_bytes as usize;
        let workload = Workload { pattern, destinations: self.destinations, payload_bytes };
        load.run(&workload, &self.schedule())
    }
}
