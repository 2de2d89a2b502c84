//! Figure 2: the time to write to several peers, until the last completion has been polled.

use serde::Deserialize;
use tramontane_core::fabric::{ErrorKind, Event, Fabric as _, Kind, Token, Write};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_fixtures::network::{Network, SharedNetwork, SimFabric, connect};
use tramontane_fixtures::profile::Profile;

use super::figures::Figures;
use super::machines::Machines;
use super::overlay::MACHINE;
use crate::error::BenchError;

/// Size of a write in bytes: one cache line.
const BYTES: usize = 64;

/// One write to each of several targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Writes {
    targets: u32,
    /// Whether each write is posted after the previous one has completed; otherwise all are posted,
    /// and then all completions are awaited.
    in_turn: bool,
}

impl Writes {
    /// Runs the case.
    ///
    /// # Errors
    /// Fails with [`BenchError::Setup`] if a write is refused or lost.
    pub(super) fn run(&self, machines: &Machines, seed: u64) -> Result<Figures, BenchError> {
        let us = self.write_us(machines.named(MACHINE)?.clone(), seed)?;
        Ok(Figures::from([("latency_us", us)]))
    }

    fn write_us(&self, profile: Profile, seed: u64) -> Result<f64, BenchError> {
        let refused = |error: ErrorKind| {
            BenchError::Setup(format!("the simulated network refused a write: {error:?}"))
        };
        let nodes: Vec<NodeId> = (1..=self.targets + 1).map(NodeId).collect();
        let network = Network::new(profile, &nodes, seed).shared();
        let mut writer = SimFabric::start(&network, 0);
        let mut others = Vec::new();
        for (process, view) in (1..nodes.len()).zip(1..) {
            let mut other = SimFabric::start(&network, process);
            let rows = connect([&mut writer, &mut other], ViewId(view), [BYTES, BYTES]);
            others.push((rows.map_err(refused)?, other));
        }
        network.borrow_mut().advance(MEET_NS);
        let begun = network.borrow().now();
        let mut open: Vec<u64> = (1..=u64::from(self.targets)).rev().collect();
        while !open.is_empty() {
            let now = open.split_off(if self.in_turn { open.len() - 1 } else { 0 });
            write(&network, &mut writer, &now).map_err(refused)?;
        }
        let ended = network.borrow().now();
        Ok((ended - begun) as f64 / 1e3)
    }
}

/// Virtual time within which processes that open views learn of each other.
const MEET_NS: u64 = 1_000_000;

/// Writes in some views, and polls the completions.
fn write(network: &SharedNetwork, writer: &mut SimFabric, views: &[u64]) -> Result<(), ErrorKind> {
    let write = [Write::of_row(0, BYTES, Kind::Content)];
    let now = network.borrow().now();
    network.borrow_mut().begin_step(0, now);
    for view in views {
        let posted = writer.post(ViewId(*view), Rank(1), &write, Some(Token(*view)));
        posted?;
    }
    let mut free = network.borrow_mut().end_step(0, 0, 100);
    let mut completed = 0;
    while completed < views.len() {
        let news = network.borrow().news_at(0).or(network.borrow().next_at());
        network.borrow_mut().run_until(news.ok_or(ErrorKind::PeerLost)?.max(free));
        let now = network.borrow().now();
        network.borrow_mut().begin_step(0, now);
        while let Some(event) = writer.poll() {
            completed += usize::from(matches!(event, Event::Completed(_)));
        }
        free = network.borrow_mut().end_step(0, 0, 100);
    }
    network.borrow_mut().run_until(free);
    Ok(())
}
