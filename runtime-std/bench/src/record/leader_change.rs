//! Table 1: all leaders crash at once, while clients send to all groups.
//!
//! The paper triggers three changes in one run. Here, crashed replicas stay down, so each change is
//! a separate run with a different seed. A message is delayed if it was in flight when the leaders
//! crashed and took longer than any before the crash.

use serde::Deserialize;
use tramontane_core::tram::{Answers, Limits};
use tramontane_fixtures::baselines::Party;
use tramontane_fixtures::shards::{
    Load, Pattern, Schedule, Sharded as _, TramOptions, TramSimulation, TramState, Workload,
};

use super::figures::Figures;
use super::machines::Machines;
use super::overlay::{GROUPS, IDLE_NS, MACHINE};
use super::tree::Tree;
use crate::error::BenchError;

/// Number of clients, each with one message to all groups in flight (8.7).
const CLIENTS: u16 = 100;

/// One change in the breadth tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaderChange {
    /// The index of the change, used as the seed.
    change: u64,
}

impl LeaderChange {
    /// Runs the change.
    ///
    /// # Errors
    /// Fails with [`BenchError::Setup`] if nothing is delayed.
    pub(super) fn run(&self, machines: &Machines) -> Result<Figures, BenchError> {
        let (profile, seed) = (machines.named(MACHINE)?.clone(), self.change);
        let (clients, options) = (CLIENTS, TramOptions::default());
        let limits = Limits {
            clients,
            log_entries: 512,
            client_window: 2,
            parent_window: 256,
            payload_max: 64,
        };
        let overlay = Tree::Breadth.overlay(3, limits)?;
        let mut state = TramState::new(&overlay);
        let tram = TramSimulation::new(&overlay, &mut state, options, profile, seed);
        let mut load = Load::new(tram, &overlay, seed);
        load.elect();
        let workload =
            Workload { pattern: Pattern::Random, destinations: GROUPS, payload_bytes: 64 };
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
        // A client sends its next message when it has the answers to the previous one, so by then
        // all messages in flight have their answers.
        let after = load.run(&workload, &schedule(3 * messages));
        let all = after.latencies_ns.iter().zip(&after.answered_ns);
        let was_under_way = |(latency, at): &(&u64, &u64)| **at - **latency <= crashed_at;
        let delayed = all.filter(was_under_way).map(|(latency, _)| *latency);
        let delayed: Vec<f64> = delayed.filter(|latency| *latency > usual_max).map(us).collect();
        if delayed.is_empty() {
            return Err(BenchError::Setup("the crash of all leaders delayed no message".into()));
        }
        let count = delayed.len() as f64;
        let mean_us = delayed.iter().sum::<f64>() / count;
        let squares: f64 = delayed.iter().map(|latency| (latency - mean_us).powi(2)).sum();
        let max_us = delayed.iter().copied().fold(0.0, f64::max);
        let suspect_us = us(options.suspect_ns);
        Ok(Figures::from([
            ("delayed", count),
            ("latency_us", mean_us),
            ("deviation_us", (squares / count).sqrt()),
            ("min_us", delayed.iter().copied().fold(f64::INFINITY, f64::min)),
            ("max_us", max_us),
            // The part of the delay beyond the time after which a leader without a heartbeat is
            // suspected.
            ("mean_beyond_us", mean_us - suspect_us),
            ("max_beyond_us", max_us - suspect_us),
            // The longest latency before the crash.
            ("usual_max_us", us(usual_max)),
        ]))
    }
}

fn us(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}
