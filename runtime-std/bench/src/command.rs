//! The arguments of `tramontane bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::blocks;
use crate::experiment::Kind;
use crate::options::{Drive, FabricKind, Senders, Technique, Variant};
use crate::profiles::ProfileArguments;
use crate::views::departure::Departure;
use tramontane_runtime::carrier::Carrier;

/// Experiments.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Measure continuous sending: messages a second at each member (Spindle IV).
    #[command(after_help = MULTICAST_EXAMPLES)]
    Multicast(Multicast),
    /// Measure block multicasts of large messages: RDMC's experiments in the simulator, or real
    /// processes.
    #[command(after_help = BLOCKS_EXAMPLES)]
    Blocks(blocks::command::Arguments),
    /// Measure the time from commit to delivery at a low rate, beside the hand-off of a cache line.
    Latency(Latency),
    /// Measure what an idle group costs: processor time and posts.
    Idle(Idle),
    /// Measure what it costs when a member is killed, is stopped or leaves under load, and check
    /// that nothing is lost.
    #[command(after_help = VIEWS_EXAMPLES)]
    Views(Views),
    /// Print what the simulator takes a machine for: each parameter, where it comes from, and how
    /// far it may be off.
    #[command(after_help = PARAMETERS_EXAMPLES)]
    Parameters(Parameters),
    /// Hold every number and direction of the papers' texts beside the simulator's.
    #[command(after_help = crate::record::command::EXAMPLES)]
    Record(crate::record::command::Arguments),
    /// Measure messages to several groups in the simulator: TRAM's figures beside RamCast's, with
    /// the paper's claims and our goals.
    #[command(after_help = crate::shards::command::EXAMPLES)]
    Shards(crate::shards::command::Arguments),
    /// Measure the levels of DDS topics in the simulator, with Spindle's techniques and without
    /// (Spindle IV-F).
    #[command(after_help = crate::dds::command::EXAMPLES)]
    Dds(crate::dds::command::Arguments),
    /// Measure groups that log: beside plain writers with as many syncs, and how long a restart of
    /// all members takes.
    #[command(after_help = crate::durable::command::EXAMPLES)]
    Durable(crate::durable::command::Arguments),
    /// One process of an experiment; started by the others.
    #[command(hide = true)]
    Worker(Worker),
}

const BLOCKS_EXAMPLES: &str = "Examples:
    tramontane bench blocks
    tramontane bench blocks --experiment algorithms --nodes 4,16 --plot blocks.svg
    tramontane bench blocks --experiment scale,delays --json
    tramontane bench blocks --experiment breakdown --profile stampede --plot steps.svg
    tramontane bench blocks --experiment overlap --profile apt --nodes 4,8,16,32
    tramontane bench blocks --experiment interrupts,offload --set interrupt_ns=3000
    tramontane bench blocks --experiment preemption --window 2
    tramontane bench blocks --fabric shm --nodes 4,8 --bytes 1048576,67108864 --probe
    tramontane bench blocks --fabric shm --nodes 4 --probe --ways own,memcpy,pieces,streaming-pieces
    tramontane bench blocks --fabric shm --experiment overlap --plot overlap.svg
    tramontane bench blocks --fabric tcp --experiment delays --slow-link 0-1 --delayed 2 \\
        --pause-blocks 4
    tramontane bench blocks --fabric tcp --algorithm pipeline,interleaved --json
    tramontane bench blocks --fabric verbs --bytes 16777216 --algorithm pipeline,sequential";

const MULTICAST_EXAMPLES: &str = "Examples:
    tramontane bench multicast --probe
    tramontane bench multicast --nodes 2,4 --bytes 1024,10240 --rounds 5
    tramontane bench multicast --drive polled --bytes 10240
    tramontane bench multicast --fabric tcp --nodes 3 --bytes 10240 --probe
    tramontane bench multicast --fabric verbs --senders one --bytes 10240
    tramontane bench multicast --fabric sim --nodes 4,8,16 --plot spindle.svg
    tramontane bench multicast --fabric sim --nodes 16 --without all --seeds 9
    tramontane bench multicast --fabric sim --profile spindle --nodes 16 --set post_ns=1000
    tramontane bench multicast --fabric sim --variant baseline,spindle --nodes 2,8,16";

/// `bench multicast`.
#[derive(Args, Clone, Debug)]
pub struct Multicast {
    /// What carries the writes
    #[arg(long, value_enum, default_value = "shm")]
    pub fabric: FabricKind,
    /// The number of members; several values give several runs
    #[arg(long, value_delimiter = ',', default_values_t = [2_u16])]
    pub nodes: Vec<u16>,
    /// Which members send
    #[arg(long, value_enum, default_value = "all")]
    pub senders: Senders,
    /// Bytes of a message; several values give several runs [default: 1,1024,10240; in the
    /// simulator 10240]
    #[arg(long, value_delimiter = ',')]
    pub bytes: Vec<u32>,
    /// Slots of each sender
    #[arg(long, default_value_t = 100)]
    pub window: u32,
    /// Messages of each sender [default: enough for about half a second]
    #[arg(long)]
    pub messages: Option<u64>,
    /// What the simulator runs, one after the other: this project's core, or Derecho as Spindle's
    /// paper describes it [default: tramontane]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub variant: Vec<Variant>,
    /// Techniques of this project's core to switch off
    #[arg(long, value_enum, value_delimiter = ',')]
    pub without: Vec<Technique>,
    /// Neither write nor read the messages' bytes, as perftest does (not in the simulator)
    #[arg(long)]
    pub untouched: bool,
    /// The wait after each message, in microseconds, at the senders that --delayed names
    #[arg(long, default_value_t = 0)]
    pub delay_us: u64,
    /// How many senders wait after each message: the first ones
    #[arg(long, value_enum, default_value = "one")]
    pub delayed: Senders,
    /// Which thread steps the member (not in the simulator)
    #[arg(long, value_enum, default_value = "caller")]
    pub drive: Drive,
    /// Runs of each configuration; the median counts (not in the simulator)
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Run a probe without a protocol in turn with each run, and print the ratio: over shared
    /// memory a bare ring between two processes, over TCP a bare mesh of the same number of
    /// processes
    #[arg(long)]
    pub probe: bool,
    /// Let the operating system place the processes, instead of pinning them to one processor
    /// after the other
    #[arg(long)]
    pub unpinned: bool,
    /// The first seed of simulated runs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Simulated runs of each configuration, each with the next seed; the median counts
    /// [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: Option<u64>,
    /// Which machine is simulated.
    #[command(flatten)]
    pub machine: ProfileArguments,
    /// Which device carries the writes.
    #[command(flatten)]
    pub device: tramontane_local::options::DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Draw bytes a second over the number of members into this SVG file
    #[arg(long, value_parser = crate::output::file)]
    pub plot: Option<PathBuf>,
}

/// `bench latency`.
#[derive(Args, Clone, Debug)]
pub struct Latency {
    /// What carries the writes
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    pub fabric: Carrier,
    /// Which device carries the writes.
    #[command(flatten)]
    pub device: tramontane_local::options::DeviceArguments,
    /// The number of members, of which the first sends
    #[arg(long, default_value_t = 2)]
    pub nodes: u16,
    /// Bytes of a message, at least 8
    #[arg(long, default_value_t = 8)]
    pub bytes: u32,
    /// Messages of each round
    #[arg(long, default_value_t = 20_000)]
    pub messages: u64,
    /// The wait between two messages, in microseconds
    #[arg(long, default_value_t = 10)]
    pub interval_us: u64,
    /// Put only the first member into the sender list, so that no null is owed
    #[arg(long)]
    pub one_sender: bool,
    /// Rounds, each with a hand-off probe over shared memory; the median counts
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `bench idle`.
#[derive(Args, Clone, Debug)]
pub struct Idle {
    /// The number of members
    #[arg(long, default_value_t = 4)]
    pub nodes: u16,
    /// How long to measure, in seconds
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const VIEWS_EXAMPLES: &str = "Examples:
    tramontane bench views
    tramontane bench views --ways kill --rounds 300 --failure-timeout-ms 1000
    tramontane bench views --fabric tcp --nodes 5 --json
    tramontane bench views --large 16777216 --rounds 5

Every message that any member delivers is checked. If one is lost, doubled, reordered or delivered \
differently, the command exits with status 7.";

/// `bench views`.
#[derive(Args, Clone, Debug)]
pub struct Views {
    /// What carries the writes
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    pub fabric: Carrier,
    /// The number of members, all of which send
    #[arg(long, default_value_t = 4)]
    pub nodes: u16,
    /// How members go, one way after the other [default: kill, stop, leave]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub ways: Vec<Departure>,
    /// How often a member goes and comes back
    #[arg(long, default_value_t = 30)]
    pub rounds: u32,
    /// A member whose heartbeat is overdue by this time is removed, in milliseconds
    #[arg(long, default_value_t = 200)]
    pub failure_timeout_ms: u64,
    /// The time from one heartbeat to the next, in milliseconds
    #[arg(long, default_value_t = 5)]
    pub heartbeat_ms: u64,
    /// Measure instead what heartbeats cost a group whose membership does not change
    #[arg(long)]
    pub steady: bool,
    /// Measure instead the rate of large messages of this size in the one order, with one sender
    /// and with all
    #[arg(long, value_name = "BYTES", conflicts_with = "steady")]
    pub large: Option<usize>,
    /// The wait between two messages of each member, in microseconds
    #[arg(long, default_value_t = 200)]
    pub pace_us: u64,
    /// The longest time between two rounds in which nothing happens, in milliseconds
    #[arg(long, default_value_t = 100)]
    pub settle_ms: u64,
    /// The seed that decides which member goes when
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const PARAMETERS_EXAMPLES: &str = "Examples:
    tramontane bench parameters
    tramontane bench parameters --profile spindle
    tramontane bench parameters --profile ./own.toml --set post_ns=500,card_send_ps=7000 --json

A profile is a TOML file. What it does not set is its base's:

    about = \"Our rack, measured on Monday\"
    base = \"usual\"

    [parameters]
    post_ns = { value = 310, source = \"ib_write_bw -n 1000000\", uncertainty = 1.1 }";

/// `bench parameters`.
#[derive(Args, Clone, Debug)]
pub struct Parameters {
    /// Which machine.
    #[command(flatten)]
    pub machine: ProfileArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `bench worker`.
#[derive(Args, Clone, Debug)]
pub struct Worker {
    /// Of which experiment
    #[arg(value_enum)]
    pub kind: Kind,
    /// What to do, as JSON
    pub task: String,
}
