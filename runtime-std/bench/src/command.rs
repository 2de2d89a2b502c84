//! The arguments of `tramontane-lab bench`.

use clap::{Args, Subcommand};

use crate::blocks;
use crate::experiment::Kind;
use crate::options::{Drive, Senders, Technique};
use crate::views::departure::Departure;
use tramontane_runtime::carrier::Carrier;

/// Experiments.
#[derive(Clone, Debug, Subcommand)]
pub enum Experiment {
    /// Measure continuous sending: messages per second at each member (Spindle IV).
    #[command(after_help = MULTICAST_EXAMPLES)]
    Multicast(Multicast),
    /// Measure block multicasts of large messages.
    #[command(after_help = BLOCKS_EXAMPLES)]
    Blocks(blocks::command::BlocksArguments),
    /// Measure the time from commit to delivery at a low rate, and compare it with the hand-off of
    /// a cache line.
    Latency(Latency),
    /// Measure the time until delivery at shares of the highest rate.
    #[command(after_help = crate::load::EXAMPLES)]
    Load(crate::load::LoadArguments),
    /// Measure the cost of an idle group: wakeups, processor time and posts.
    Idle(Idle),
    /// Measure what it costs when a member is killed, is stopped or leaves under load, and check
    /// that nothing is lost.
    #[command(after_help = VIEWS_EXAMPLES)]
    Views(Views),
    /// Compare the papers' claims and this project's goals with the simulator's results.
    #[command(after_help = crate::record::command::EXAMPLES)]
    Record(crate::record::command::RecordArguments),
    /// Measure TRAM on this machine: messages to several groups, and leaders that are killed.
    #[command(after_help = crate::shards::command::EXAMPLES)]
    Shards(crate::shards::command::ShardsArguments),
    /// Measure groups that log, compared with plain writers that sync equally often, and the
    /// duration of a restart of all members.
    #[command(after_help = crate::durable::command::EXAMPLES)]
    Durable(crate::durable::command::DurableArguments),
    /// Run one process of an experiment; started by the other commands.
    #[command(hide = true)]
    Worker(WorkerArguments),
}

const BLOCKS_EXAMPLES: &str = "Examples:
    tramontane-lab bench blocks --fabric shm --nodes 4,8 --bytes 1048576,67108864 --probe
    tramontane-lab bench blocks --nodes 4,8 --senders all
    tramontane-lab bench blocks --fabric tcp --algorithm pipeline,interleaved --json
    tramontane-lab bench blocks --fabric verbs --bytes 16777216 --algorithm pipeline,sequential";

const MULTICAST_EXAMPLES: &str = "Examples:
    tramontane-lab bench multicast --probe
    tramontane-lab bench multicast --nodes 2,4 --bytes 1024,10240 --rounds 5
    tramontane-lab bench multicast --drive polled --bytes 10240
    tramontane-lab bench multicast --fabric tcp --nodes 3 --bytes 10240 --probe
    tramontane-lab bench multicast --fabric verbs --senders one --bytes 10240";

/// Arguments of `bench multicast`.
#[derive(Args, Clone, Debug)]
pub struct Multicast {
    /// The fabric
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    pub fabric: Carrier,
    /// The number of members; several values give several runs
    #[arg(long, value_delimiter = ',', default_values_t = [2_u16])]
    pub nodes: Vec<u16>,
    /// Which members send
    #[arg(long, value_enum, default_value = "all")]
    pub senders: Senders,
    /// Size of a message in bytes; several values give several runs
    #[arg(long, value_delimiter = ',', default_values_t = [1_u32, 1_024, 10_240])]
    pub bytes: Vec<u32>,
    /// Number of slots per sender
    #[arg(long, default_value_t = 100)]
    pub window: u32,
    /// Number of messages per sender [default: enough for about half a second]
    #[arg(long)]
    pub messages: Option<u64>,
    /// Spindle's techniques to disable
    #[arg(long, value_enum, value_delimiter = ',')]
    pub without: Vec<Technique>,
    /// Neither write nor read the bytes of messages, as in perftest
    #[arg(long)]
    pub untouched: bool,
    /// Which thread steps the member
    #[arg(long, value_enum, default_value = "caller")]
    pub drive: Drive,
    /// Number of runs of each configuration; the median is reported
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Alternate each run with a probe that has no protocol, and print the ratio: over shared
    /// memory a bare ring between two processes, over TCP a bare mesh of the same number of
    /// processes
    #[arg(long)]
    pub probe: bool,
    /// Encrypt what travels over TCP, alternate each run with one that does not, and print the
    /// ratio
    #[arg(long, conflicts_with = "probe")]
    pub key: bool,
    /// Let members fail, leave and join; otherwise all are members from beginning to end
    #[arg(long)]
    pub changing: bool,
    /// Let the operating system place the processes instead of pinning each to a processor
    #[arg(long)]
    pub unpinned: bool,
    /// The device that carries the writes.
    #[command(flatten)]
    pub device: tramontane_local::options::DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench latency`.
#[derive(Args, Clone, Debug)]
pub struct Latency {
    /// The fabric
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    pub fabric: Carrier,
    /// The device that carries the writes.
    #[command(flatten)]
    pub device: tramontane_local::options::DeviceArguments,
    /// The number of members; the first one sends
    #[arg(long, default_value_t = 2)]
    pub nodes: u16,
    /// Size of a message in bytes, at least 8
    #[arg(long, default_value_t = 8)]
    pub bytes: u32,
    /// Number of messages in each round
    #[arg(long, default_value_t = 20_000)]
    pub messages: u64,
    /// The wait between two messages, in microseconds
    #[arg(long, default_value_t = 10)]
    pub interval_us: u64,
    /// Put only the first member into the sender list, so that no nulls are required
    #[arg(long)]
    pub one_sender: bool,
    /// Encrypt what travels over TCP
    #[arg(long)]
    pub key: bool,
    /// Let members fail, leave and join; otherwise all are members from beginning to end
    #[arg(long)]
    pub changing: bool,
    /// Number of rounds, each with a hand-off probe over shared memory; the median is reported
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench idle`.
#[derive(Args, Clone, Debug)]
pub struct Idle {
    /// The number of members
    #[arg(long, default_value_t = 4)]
    pub nodes: u16,
    /// Duration of the measurement, in seconds
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const VIEWS_EXAMPLES: &str = "Examples:
    tramontane-lab bench views
    tramontane-lab bench views --ways kill --rounds 300 --failure-timeout-ms 1000
    tramontane-lab bench views --fabric tcp --nodes 5 --json
    tramontane-lab bench views --large 16777216 --rounds 5

Every message that any member delivers is checked. If one is lost, duplicated, reordered or altered, \
the command exits with status 7.";

/// Arguments of `bench views`.
#[derive(Args, Clone, Debug)]
pub struct Views {
    /// The fabric
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    pub fabric: Carrier,
    /// The number of members, all of which send
    #[arg(long, default_value_t = 4)]
    pub nodes: u16,
    /// How a member departs, in turn [default: kill, stop, leave]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub ways: Vec<Departure>,
    /// The number of times that a member departs and returns
    #[arg(long, default_value_t = 30)]
    pub rounds: u32,
    /// Time in milliseconds by which a member's heartbeat must be overdue before the member is
    /// removed
    #[arg(long, default_value_t = 200)]
    pub failure_timeout_ms: u64,
    /// Interval between heartbeats, in milliseconds
    #[arg(long, default_value_t = 5)]
    pub heartbeat_ms: u64,
    /// Measure instead the rate of large messages of this size in the total order, with one sender
    /// and with all members sending
    #[arg(long, value_name = "BYTES")]
    pub large: Option<usize>,
    /// The time between two messages of each member, in microseconds
    #[arg(long, default_value_t = 200)]
    pub pace_us: u64,
    /// The longest quiet time between two rounds, in milliseconds
    #[arg(long, default_value_t = 100)]
    pub settle_ms: u64,
    /// The seed that determines which member departs and when
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench worker`.
#[derive(Args, Clone, Debug)]
pub struct WorkerArguments {
    /// The kind of experiment
    #[arg(value_enum)]
    pub kind: Kind,
    /// The task as JSON
    pub task: String,
}
