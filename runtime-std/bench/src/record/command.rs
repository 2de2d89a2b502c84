//! The arguments of `tramontane bench record`.

use std::path::PathBuf;

use clap::Args;

use super::claim::Paper;
use crate::profiles::ProfileArguments;

/// Of the command's help.
pub(crate) const EXAMPLES: &str = "Examples:
    tramontane bench record
    tramontane bench record --paper rdmc --seeds 1
    tramontane bench record --only spindle-batching-16,spindle-final-gain --own
    tramontane bench record --set post_ns=1000 --json
    tramontane bench record --output docs/evaluation/record.md";

/// `bench record`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The paper [default: both]
    #[arg(long, value_enum)]
    pub paper: Option<Paper>,
    /// Only these claims, by id
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Runs of each case, each with another seed; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// Measure our own core with Spindle's switches too, in a second column
    #[arg(long)]
    pub own: bool,
    /// Which machine stands for all of the papers'.
    #[command(flatten)]
    pub machine: ProfileArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the record into this file too, as Markdown
    #[arg(long, value_parser = crate::output::file)]
    pub output: Option<PathBuf>,
}
