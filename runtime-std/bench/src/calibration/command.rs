//! The arguments of `bench calibrate` and `bench predict`.

use std::path::PathBuf;

use clap::Args;

use super::held_out::Fabric;
use crate::profiles::ProfileArguments;

pub(crate) const CALIBRATE_EXAMPLES: &str = "Examples:
    tramontane bench calibrate
    tramontane bench calibrate --fabric tcp --rounds 9 --output here-tcp.toml
    sudo chrt -f 50 tramontane bench calibrate --json

On a machine that others use, let it go first: sudo chrt -f 50, or sudo nice -n -20.";

/// `bench calibrate`.
#[derive(Args, Clone, Debug)]
pub struct Calibrate {
    /// What carries the writes of the groups that the profile is for
    #[arg(long, value_enum, default_value = "shm")]
    pub fabric: Fabric,
    /// Rounds of all microbenchmarks in one state of the machine; the median counts
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Write the profile to this file, which --profile takes
    #[arg(long, value_parser = crate::output::file, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub(crate) const PREDICT_EXAMPLES: &str = "Examples:
    tramontane bench predict
    tramontane bench predict --fabric tcp --profile ./here-tcp.toml --rounds 9
    sudo chrt -f 50 tramontane bench predict --measured-output measured.json --output shm.md
    tramontane bench predict --measured measured.json --set foreign_line_ns=60

None of the runs is used by 'bench calibrate': it measures parts of the machine alone.";

/// `bench predict`.
#[derive(Args, Clone, Debug)]
pub struct Predict {
    /// What carries the writes
    #[arg(long, value_enum, default_value = "shm")]
    pub fabric: Fabric,
    /// Rounds of all runs in the profile's state of the machine; the median counts
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Seed of the simulated runs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Take what was measured from this file, and measure nothing
    #[arg(long, value_name = "FILE", conflicts_with = "rounds")]
    pub measured: Option<PathBuf>,
    /// Write what was measured to this file
    #[arg(long, value_parser = crate::output::file, value_name = "FILE", conflicts_with = "measured")]
    pub measured_output: Option<PathBuf>,
    /// Write the table to this file, as Markdown
    #[arg(long, value_parser = crate::output::file, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Which machine is simulated.
    #[command(flatten)]
    pub machine: ProfileArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
