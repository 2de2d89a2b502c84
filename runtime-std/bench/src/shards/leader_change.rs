//! Table 1: all leaders crash at once, while clients send to all groups.
//!
//! The paper triggers three changes in one run. Here replicas that crashed stay away, so each
//! change is a run of its own, with another seed. A message is delayed if it was under way when the
//! leaders crashed and took longer than any before the crash.

use serde::Serialize;
use tramontane_core::tram::{Answers, Limits};
use tramontane_fixtures::baselines::Party;
use tramontane_fixtures::profile::Profile;
use tramontane_fixtures::shards::{
    Load, Pattern, Schedule, Sharded as _, TramOptions, TramSimulation, TramState, Workload,
};

use super::case::IDLE_NS;
use super::experiment::GROUPS;
use super::tree::Tree;
use crate::error::BenchError;

/// Clients, each with one message to all groups under way (8.7).
const CLIENTS: u16 = 100;

/// The delayed messages of one change.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct LeaderChange {
    /// How many there were.
    pub(super) delayed: usize,
    pub(super) mean_us: f64,
    pub(super) deviation_us: f64,
    pub(super) min_us: f64,
    pub(super) max_us: f64,
    /// After how long without a heartbeat a leader counts as gone.
    pub(super) suspect_us: f64,
    /// The longest latency before the crash.
    pub(super) usual_max_us: f64,
}

impl LeaderChange {
    /// The mean delay that is not the time to suspect.
    pub(super) fn mean_beyond_us(&self) -> f64 {
        self.mean_us - self.suspect_us
    }

    /// The longest.
    pub(super) fn max_beyond_us(&self) -> f64 {
        self.max_us - self.suspect_us
    }
}

/// One change in the breadth tree.
///
/// # Errors
/// [`BenchError::Setup`] if nothing is delayed.
pub(super) fn run(profile: Profile, seed: u64, is_quick: bool) -> Result<LeaderChange, BenchError> {
    let clients = if is_quick { 10 } else { CLIENTS };
    let limits =
        Limits { clients, log_entries: 512, client_window: 2, parent_window: 256, payload_max: 64 };
    let overlay = Tree::Breadth.overlay(3, limits)?;
    let options = TramOptions::default();
    let mut state = TramState::new(&overlay);
    let tram = TramSimulation::new(&overlay, &mut state, options, profile, seed);
    let mut load = Load::new(tram, &overlay, seed);
    load.elect();
    let workload = Workload { pattern: Pattern::Random, destinations: GROUPS, payload_bytes: 64 };
    let messages = usize::from(clients);
    let schedule = |measured| Schedule {
        clients,
        answers: Answers::Leaders,
        warm_up: 0,
        measured,
        idle_ns: IDLE_NS,
    };
    let before = load.run(&workload, &schedule(3 * messages));
    let usual_max = before.latencies_ns.iter().copied().max().unwrap_or(0);
    let crashed_at = load.now_ns();
    for group in overlay.all().iter() {
        let leader = load.simulation.leader(group).map(Party::Replica);
        let processes = 0..load.simulation.processes();
        let is_it = |process: &usize| Some(load.simulation.party(*process)) == leader;
        if let Some(process) = processes.clone().find(is_it) {
            load.crash(process);
        }
    }
    // Who is answered first sends again: by then all that was under way has its answers.
    let after = load.run(&workload, &schedule(3 * messages));
    let all = after.latencies_ns.iter().zip(&after.answered_ns);
    let was_under_way = |(latency, at): &(&u64, &u64)| **at - **latency <= crashed_at;
    let delayed = all.filter(was_under_way).map(|(latency, _)| *latency);
    let delayed: Vec<f64> = delayed.filter(|latency| *latency > usual_max).map(us).collect();
    if delayed.is_empty() {
        return Err(BenchError::Setup("a crash of all leaders delays no message".into()));
    }
    let count = delayed.len() as f64;
    let mean_us = delayed.iter().sum::<f64>() / count;
    let squares: f64 = delayed.iter().map(|latency| (latency - mean_us).powi(2)).sum();
    Ok(LeaderChange {
        delayed: delayed.len(),
        mean_us,
        deviation_us: (squares / count).sqrt(),
        min_us: delayed.iter().copied().fold(f64::INFINITY, f64::min),
        max_us: delayed.iter().copied().fold(0.0, f64::max),
        suspect_us: us(options.suspect_ns),
        usual_max_us: us(usual_max),
    })
}

fn us(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}
