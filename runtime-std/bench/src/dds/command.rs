//! The arguments of `tramontane bench dds`.

use std::path::PathBuf;

use clap::Args;

use crate::profiles::ProfileArguments;

/// Of the command's help.
pub(crate) const EXAMPLES: &str = "Examples:
    tramontane bench dds
    tramontane bench dds --subscribers 1,15 --seeds 3
    tramontane bench dds --set disk_bytes_per_us=500,disk_sync_ns=100000
    tramontane bench dds --output docs/evaluation/dds-levels.md";

/// `bench dds`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The numbers of subscribers
    #[arg(long, value_delimiter = ',', default_values_t = [1_u16, 3, 7, 11, 15])]
    pub subscribers: Vec<u16>,
    /// Bytes of a sample
    #[arg(long, default_value_t = 10_240, value_parser = clap::value_parser!(u32).range(1..))]
    pub bytes: u32,
    /// Samples of a run
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: u64,
    /// Runs of each case, each with another seed; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// Which machine is simulated: unless another is named, that of the paper. Where nothing is
    /// said of its disks, each writes 2 GB/s and makes it durable within 20 us.
    #[command(flatten)]
    pub machine: ProfileArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the tables and the goals into this file too, as Markdown
    #[arg(long, value_parser = crate::output::file, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The machine where none is named.
pub(super) const MACHINE: &str = "spindle";

/// What a disk writes where the machine's profile says nothing of disks: assumed, as the paper does
/// not say which it had.
pub(super) const DISK_BYTES_PER_US: u64 = 2_000;

/// How long it takes to make that durable.
pub(super) const DISK_SYNC_NS: u64 = 20_000;
