//! The paper's Fig. 11: the completion thread polls and sleeps after 50 ms, or sleeps at once, or
//! never; bandwidth, and how much of a processor it takes.

use clap::ValueEnum as _;
use tramontane_core::rdmc::Algorithm;
use tramontane_fixtures::block_multicast::START_NS;

use super::bed::Bed;
use super::command::Arguments;
use super::experiment::Experiment;
use super::report::Row;
use super::simulated::simulated;
use crate::error::BenchError;
use tramontane_local::options;

/// The machine of Fig. 11.
pub(super) const MACHINE: &str = "fractus";

/// How completions are learned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Completions {
    /// Polls, and sleeps where nothing came for 50 ms
    Hybrid,
    /// Sleeps whenever nothing is to be done
    Interrupts,
    /// Never sleeps
    Polling,
}

impl Completions {
    /// The same machine, whose threads learn of completions so.
    pub(crate) fn on(self, bed: &Bed) -> Bed {
        let mut bed = bed.clone();
        bed.profile.poll_for_ns = match self {
            Self::Hybrid => 50_000_000,
            Self::Interrupts => 1,
            Self::Polling => 0,
        };
        bed
    }
}

/// What a series of messages came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes of messages a second.
    pub(crate) bytes_per_s: f64,
    /// The completion thread's share of a processor, the mean of all members.
    pub(crate) processor: f64,
}

/// A message's size, its blocks' and how many messages: the paper does not say how large its blocks
/// are here. 1 MB is what it uses elsewhere; for smaller messages a size near the best of Fig. 6.
pub(crate) const SIZES: [(usize, usize, usize); 3] =
    [(100 << 20, 1 << 20, 2), (1 << 20, 128 << 10, 50), (10 << 10, 10 << 10, 200)];

/// Fig. 11: messages one after the other.
pub(crate) fn figure_11(
    bed: &Bed,
    nodes: usize,
    (bytes, block_bytes, messages): (usize, usize, usize),
    completions: Completions,
) -> Result<Load, BenchError> {
    let bed = completions.on(bed);
    let algorithm = if bytes > block_bytes { Algorithm::Pipeline } else { Algorithm::Tree };
    let report = simulated(&bed.series(nodes, algorithm, &vec![bytes; messages], block_bytes))?;
    let took_ns = report.last_completion().unwrap_or(START_NS).saturating_sub(START_NS).max(1);
    let awake: u64 = report.awake_ns.iter().sum();
    Ok(Load {
        bytes_per_s: (bytes * messages) as f64 * 1e9 / took_ns as f64,
        processor: awake as f64 / (nodes as u64 * took_ns) as f64,
    })
}

/// All sizes and modes, for several groups.
pub(super) fn interrupts(arguments: &Arguments) -> Result<Vec<Row>, BenchError> {
    let bed = Bed::asked(arguments, MACHINE)?;
    let mut rows = Vec::new();
    for sizes in SIZES {
        for nodes in arguments.members(&[4, 8, 16]) {
            let mut hybrid = None;
            for completions in Completions::value_variants() {
                let load = figure_11(&bed, nodes, sizes, *completions)?;
                let by = load.bytes_per_s / hybrid.get_or_insert(load).bytes_per_s;
                let setup = bed.single(nodes, Algorithm::Pipeline, sizes.0, sizes.1);
                let latency_ms = sizes.0 as f64 * 1e3 / load.bytes_per_s;
                let row = Row::of_time(Experiment::Interrupts, &setup, latency_ms);
                let how = options::name(completions);
                let beside = format!(
                    "{how}: {by:.3} of the hybrid's bandwidth; {:.0} % of a processor",
                    100.0 * load.processor
                );
                rows.push(row.beside(
                    beside,
                    "with interrupts alone the load drops from 100 % to around 10 % at 100 MB and \
                     50 % at 1 MB, and little at 10 KB; the bandwidth hardly; polling alone is not \
                     measurably faster (Fig. 11, 5.2.3)",
                ));
            }
        }
    }
    Ok(rows)
}
