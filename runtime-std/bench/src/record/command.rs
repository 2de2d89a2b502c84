//! The arguments of `tramontane-lab bench record`.

use std::path::PathBuf;

use clap::Args;

use super::rows::Paper;
use crate::profiles::MachineArguments;

/// Shown in the command's help.
pub(crate) const EXAMPLES: &str = "Examples:
    tramontane-lab bench record --paper spindle --seeds 1
    tramontane-lab bench record --only spindle-batching-16,spindle-final-gain
    tramontane-lab bench record --paper rdmc --set post_ns=1000 --json
    tramontane-lab bench record --rows ./own.toml
    tramontane-lab bench record --paper spindle,rdmc --output docs/evaluation/record.md
    tramontane-lab bench record --paper spindle-figures --seeds 1 --plots docs/evaluation
    tramontane-lab bench record --paper tram --output docs/evaluation/tram-record.md --plots docs/evaluation";

/// Arguments of `bench record`.
#[derive(Args, Clone, Debug)]
pub struct RecordArguments {
    /// The papers [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub paper: Vec<Paper>,
    /// Rows of your own instead of the papers': a file like those in runtime-std/bench/claims
    #[arg(long, value_name = "FILE", conflicts_with = "paper")]
    pub rows: Option<PathBuf>,
    /// Only these claims and goals, given by id
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Number of runs of each case, each with a different seed; the median is reported
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// The parameters set on the papers' machines.
    #[command(flatten)]
    pub machine: MachineArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Also write the record to this file, as Markdown
    #[arg(long, value_parser = crate::output::file, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw the papers' figures as SVG files in this folder
    #[arg(long, value_parser = crate::output::folder, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,
}
