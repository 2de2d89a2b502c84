//! Messages to several groups (TRAM 8): TRAM over its trees, and the protocols that it is compared
//! with. Each case is a run of one system under load.

use serde::Deserialize;
use tramontane_core::tram::{Answers, Limits};
use tramontane_fixtures::baselines::{Options, Protocol, Simulation};
use tramontane_fixtures::shards::{
    Load, Measured, Pattern, Schedule, Sharded, TramOptions, TramSimulation, TramState, Workload,
};

use super::machines::Machines;
use super::runs::Figures;
use super::tree::Tree;
use crate::error::BenchError;

pub(super) use super::leader_change::LeaderChange;
pub(super) use super::writes::Writes;

/// The machine of the paper, and the same with the kernel's TCP, for protocols that talk by
/// messages.
pub(super) const MACHINE: &str = "r320_fdr";
const MESSAGES_MACHINE: &str = "r320_tcp";

/// Groups of the trees of eight.
pub(super) const GROUPS: u32 = 8;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum System {
    Tram,
    RamCast,
    /// By messages, and not replicated.
    Skeen,
    /// The same, with crash faults. Of it the paper takes the base tree (8.6).
    ByzCast,
}

/// What this project adds to a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Variant {
    /// The protocol as its paper has it.
    Paper,
    /// Messages are passed on while they are replicated.
    Early,
    /// A step takes all that is there.
    Batching,
    /// Messages are passed on to the leaders of children alone.
    Leaders,
    /// All three.
    All,
    /// All three, and entries refer to large payloads, which clients give to all replicas (TRM-9).
    References,
}

/// How many clients send, each one message at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Demand {
    /// One: latency without queues.
    Low,
    /// As many as saturate a leader.
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
    /// Whether messages go to groups next to each other in the tree.
    adjacent: bool,
    destinations: u32,
    payload_bytes: u32,
    /// Of each group.
    replicas: u16,
}

/// A message of 64 bytes to random groups, by one client.
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

/// Bytes of rings and logs of a run, at most: the entries of large messages are fewer.
const RING_BYTES: u32 = 2 << 20;

/// The largest message that does not count as large: fewer clients saturate the ports with larger
/// ones.
const SMALL_BYTES: u32 = 1 << 10;

/// From how many bytes on entries refer to payloads, where that is switched on.
const REFERENCES_FROM: u32 = 4 << 10;

/// The time to suspect where large messages fill the ports, in ns.
const SUSPECT_LARGE_NS: u64 = 20_000_000;

/// Between two steps of a replica that finds nothing, in ns, at most. It polls: what a step saw of
/// others' counts may lead to work some steps later, and no step says so.
pub(super) const IDLE_NS: u64 = 500;

impl Ordered {
    /// The same, where one group or all of them are drawn alike: such a case is run once.
    pub(super) fn drawn(self) -> Self {
        Self { adjacent: self.adjacent && (2..GROUPS).contains(&self.destinations), ..self }
    }

    /// How many clients send.
    const fn clients(&self) -> u16 {
        match (self.demand, self.payload_bytes) {
            (Demand::Low, _) => 1,
            (Demand::Saturating, ..=SMALL_BYTES) => 48,
            (Demand::Saturating, _) => 24,
        }
    }

    /// After how long a replica that is silent counts as gone. A heartbeat waits behind all that
    /// its replica has posted. With all clients' large messages that is several milliseconds.
    fn suspect_ns(&self) -> u64 {
        match (self.demand, self.payload_bytes) {
            (Demand::Saturating, bytes) if bytes > SMALL_BYTES => SUSPECT_LARGE_NS,
            _ => TramOptions::default().suspect_ns,
        }
    }

    /// What the overlay allows.
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

    /// What comes before all clients are at work is not measured.
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

    /// Runs it.
    ///
    /// # Errors
    /// [`BenchError`] if there is no such overlay.
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
            let options = Options { protocol, batching: is(Variant::Batching) };
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
