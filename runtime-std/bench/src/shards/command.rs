//! The arguments of `tramontane bench shards`.

use std::path::PathBuf;

use clap::Args;

use super::experiment::Experiment;
use super::real::command::RealArguments;
use crate::profiles::ProfileArguments;

/// Of the command's help.
pub(crate) const EXAMPLES: &str = "Examples:
    tramontane bench shards
    tramontane bench shards --experiment random,adjacent --seeds 1 --plots .
    tramontane bench shards --experiment leader-change --json
    tramontane bench shards --experiment payload --set copy_byte_ps=50
    tramontane bench shards --output docs/evaluation/shards.md --plots docs/evaluation
    tramontane bench shards --real
    tramontane bench shards --real --fabric shm --system tram --destinations 1,2,8 --rounds 9 --json
    tramontane bench shards --real --fabric shm --kills 50";

/// `bench shards`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The experiments to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub experiment: Vec<Experiment>,
    /// Runs of each case, each with another seed; the median counts. Of leader changes there are
    /// three at least, as in the paper
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// Run the ends of each axis alone, and few messages
    #[arg(long)]
    pub quick: bool,
    /// Which machine is simulated: unless another is named, that of the paper.
    #[command(flatten)]
    pub machine: ProfileArguments,
    /// What is run on this machine instead.
    #[command(flatten)]
    pub real: RealArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the tables, the paper's claims and the goals into this file too, as Markdown
    #[arg(long, value_parser = crate::output::file, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw each figure into an SVG file in this folder: shards-NAME.svg
    #[arg(long, value_parser = crate::output::folder, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,
}

/// The machine that the experiments are of where none is named.
pub(super) const MACHINE: &str = "r320-fdr";

/// The same with the kernel's TCP, for protocols that talk by messages.
pub(super) const MESSAGES_MACHINE: &str = "r320-tcp";

impl Arguments {
    /// What is to be run.
    pub(super) fn chosen(&self) -> Vec<Experiment> {
        if self.experiment.is_empty() {
            return <Experiment as clap::ValueEnum>::value_variants().to_vec();
        }
        self.experiment.clone()
    }

    /// The seeds.
    pub(super) fn seeds(&self) -> Vec<u64> {
        (1..=self.seeds).collect()
    }
}
