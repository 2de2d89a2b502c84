//! What is run for a point of a figure, and what comes of it.

use tramontane_core::tram::{Answers, Limits};
use tramontane_fixtures::baselines::{Options, Simulation};
use tramontane_fixtures::profile::Profile;
use tramontane_fixtures::shards::{
    Load, Measured, Pattern, Schedule, Sharded, TramOptions, TramSimulation, TramState, Workload,
};

use super::system::System;
use crate::error::BenchError;

/// How many clients send, each one message at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Demand {
    /// One: latency without queues.
    Low,
    /// As many as saturate a leader.
    Saturating,
}

/// A run of one system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) system: System,
    pub(super) demand: Demand,
    pub(super) is_adjacent: bool,
    pub(super) destinations: u32,
    pub(super) payload_bytes: u32,
    pub(super) replicas: u16,
    /// A short run, for tests.
    pub(super) is_quick: bool,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) mean_us: f64,
    pub(super) p99_us: f64,
    pub(super) messages_per_s: f64,
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

impl Case {
    /// A message of 64 bytes to random groups, by one client. Groups have three replicas, and those
    /// that talk by messages one (8.6).
    pub(super) const fn of(system: System, destinations: u32) -> Self {
        Self {
            system,
            demand: Demand::Low,
            is_adjacent: false,
            destinations,
            payload_bytes: 64,
            replicas: if system.is_message_passing() { 1 } else { 3 },
            is_quick: false,
        }
    }

    /// How many clients send.
    pub(super) const fn clients(&self) -> u16 {
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
        let (warm_up, measured) = match (self.demand, self.is_quick) {
            (Demand::Low, true) => (2, 10),
            (Demand::Low, false) => (10, 60),
            (Demand::Saturating, true) => (clients, clients),
            (Demand::Saturating, false) if self.payload_bytes > SMALL_BYTES => {
                (clients, 2 * clients)
            }
            (Demand::Saturating, false) => (clients, 4 * clients),
        };
        let answers = Answers::Leaders;
        Schedule { clients: self.clients(), answers, warm_up, measured, idle_ns: IDLE_NS }
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`BenchError`] if there is no such overlay.
    pub(super) fn run(&self, profile: Profile, seed: u64) -> Result<Figures, BenchError> {
        let overlay = self.system.tree().overlay(self.replicas, self.limits())?;
        let overlay = match self.system {
            System::Tram(_, switches) if switches.references => {
                overlay.with_references(REFERENCES_FROM)
            }
            _ => overlay,
        };
        let measured = match self.system {
            System::Tram(_, switches) => {
                let mut state = TramState::new(&overlay);
                let options = TramOptions {
                    batching: switches.batching,
                    passes_on_early: switches.passes_on_early,
                    serves_leaders_alone: switches.serves_leaders_alone,
                    suspect_ns: self.suspect_ns(),
                    ..TramOptions::default()
                };
                let tram = TramSimulation::new(&overlay, &mut state, options, profile, seed);
                self.load(Load::new(tram, &overlay, seed))
            }
            System::Baseline { protocol, batching } => {
                let options = Options { protocol, batching };
                let simulation = Simulation::new(&overlay, options, profile, seed);
                self.load(Load::new(simulation, &overlay, seed))
            }
        };
        Ok(Figures {
            mean_us: measured.mean_ns() / 1e3,
            p99_us: measured.percentile_ns(99) as f64 / 1e3,
            messages_per_s: measured.messages_per_s(),
        })
    }

    fn load(&self, mut load: Load<'_, impl Sharded>) -> Measured {
        load.elect();
        let pattern = if self.is_adjacent { Pattern::Adjacent } else { Pattern::Random };
        let payload_bytes = self.payload_bytes as usize;
        let workload = Workload { pattern, destinations: self.destinations, payload_bytes };
        load.run(&workload, &self.schedule())
    }
}
