//! The paper's Fig. 12: a chain whose blocks are passed on by the cards (CORE-Direct), beside one
//! whose blocks are passed on by software.

use tramontane_core::rdmc::Algorithm;
use tramontane_fixtures::block_multicast::{START_NS, Setup};

use super::bed::Bed;
use super::breakdown::OFFLOADED;
use super::command::Arguments;
use super::experiment::Experiment;
use super::interrupts::Completions;
use super::report::Row;
use super::simulated::simulated;
use crate::error::BenchError;
use tramontane_local::options;

/// The machine of Fig. 12.
pub(super) const MACHINE: &str = "fractus";

/// "A chain multicast protocol to send a 100 MB message".
const BYTES: usize = 100 << 20;

/// Bytes a second of all senders together, by software and by the cards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Both {
    pub(crate) software: f64,
    pub(crate) cards: f64,
}

/// Fig. 12: a chain of that many members, of which so many send at the same time.
pub(crate) fn figure_12(
    bed: &Bed,
    nodes: usize,
    senders: usize,
    block_bytes: usize,
    completions: Completions,
) -> Result<Both, BenchError> {
    let bed = completions.on(bed);
    let setup = bed.overlapping(nodes, senders, Algorithm::Chain, BYTES, block_bytes);
    let rate = |setup: &Setup| -> Result<f64, BenchError> {
        let last = simulated(setup)?.last_completion().unwrap_or(START_NS);
        let took_ns = last.saturating_sub(START_NS).max(1);
        Ok((BYTES * senders) as f64 * 1e9 / took_ns as f64)
    };
    let offloaded = Setup { offloads: true, window: OFFLOADED, ..setup.clone() };
    Ok(Both { software: rate(&setup)?, cards: rate(&offloaded)? })
}

/// For several groups, senders and modes.
pub(super) fn offload(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, MACHINE)?;
    let mut rows = Vec::new();
    for completions in [Completions::Hybrid, Completions::Interrupts] {
        for nodes in arguments.members(&[3, 4, 5, 6, 7, 8]) {
            for (what, senders) in [("one sends", 1), ("half send", nodes / 2), ("all send", nodes)]
            {
                let block_bytes = arguments.block_bytes();
                let both = figure_12(&bed, nodes, senders, block_bytes, completions)?;
                let setup = bed.overlapping(nodes, senders, Algorithm::Chain, BYTES, block_bytes);
                let how = options::name(&completions);
                let gain =
                    format!(": {:.3} of the bandwidth by software", both.cards / both.software);
                for (by, rate, beside) in
                    [("software", both.software, ""), ("the cards", both.cards, &gain)]
                {
                    let latency_ms = (BYTES * senders) as f64 * 1e3 / rate;
                    let row = Row::of_time(Experiment::Offload, &setup, latency_ms);
                    rows.push(row.beside(
                        format!("{how}, {what}, by {by}{beside}"),
                        "cross-channel provides a speedup of about 5 %; a single sender among 5 to \
                         8, polling, is the one case in which software wins, and nothing here \
                         would explain that (Fig. 12, 5.2.3)",
                    ));
                }
            }
        }
    }
    Ok(rows)
}
