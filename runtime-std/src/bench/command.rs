//! The arguments of `tramontane bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tramontane_core::multicast::Switches;

use crate::local::Carrier;
use crate::rdma::DeviceOptions;

/// Experiments.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Continuous sending: messages a second at each member (Spindle IV).
    #[command(after_help = MULTICAST_EXAMPLES)]
    Multicast(Multicast),
    /// Block multicasts of large messages: RDMC's experiments in the simulator, or real processes beside MPI_Bcast.
    #[command(after_help = BLOCKS_EXAMPLES)]
    Blocks(super::blocks::command::Arguments),
    /// Time from commit to delivery at a low rate, beside the hand-off of one cache line.
    Latency(Latency),
    /// What a group that has nothing to do costs: processor time, and posts.
    Idle(Idle),
    /// What it costs when a member is killed, stopped or leaves under load; and whether anything is lost.
    #[command(after_help = VIEWS_EXAMPLES)]
    Views(Views),
    /// One process of an experiment; started by the others.
    #[command(hide = true)]
    Worker(Worker),
    /// One member of a group whose membership changes; started by `views`.
    #[command(hide = true)]
    ViewMember(Worker),
}

const BLOCKS_EXAMPLES: &str = "Examples:
    tramontane bench blocks
    tramontane bench blocks --experiment algorithms --nodes 4,16 --plot blocks.svg
    tramontane bench blocks --experiment scale,delays --json
    tramontane bench blocks --fabric shm --nodes 4,8 --bytes 1048576,67108864 --probe
    tramontane bench blocks --fabric shm --nodes 4 --probe --ways own,memcpy,pieces,streaming-pieces
    tramontane bench blocks --fabric shm --experiment overlap --plot overlap.svg
    tramontane bench blocks --fabric tcp --experiment delays --slow-link 0-1 --delayed 2 --pause-blocks 4
    tramontane bench blocks --fabric tcp --algorithm pipeline,interleaved --json
    tramontane bench blocks --fabric verbs --nodes 4 --bytes 16777216 --algorithm pipeline,sequential";

const MULTICAST_EXAMPLES: &str = "Examples:
    tramontane bench multicast --probe
    tramontane bench multicast --nodes 2,4 --bytes 1024,10240 --rounds 5
    tramontane bench multicast --drive polled --bytes 10240
    tramontane bench multicast --fabric tcp --nodes 3 --bytes 10240 --probe
    tramontane bench multicast --fabric verbs --senders one --bytes 10240
    tramontane bench multicast --fabric sim --nodes 4,8,16 --plot spindle.svg
    tramontane bench multicast --fabric sim --nodes 16 --without all";

/// What carries the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FabricKind {
    /// Shared memory, with real processes on this machine.
    Shm,
    /// TCP, with real processes on this machine.
    Tcp,
    /// RDMA, with real processes on this machine, if this program is built with it.
    Verbs,
    /// The simulator: virtual time, the paper's hardware.
    Sim,
}

impl FabricKind {
    /// What carries the writes of real processes; nothing does in the simulator.
    #[must_use]
    pub const fn carrier(self) -> Option<Carrier> {
        match self {
            Self::Shm => Some(Carrier::SharedMemory),
            Self::Tcp => Some(Carrier::Tcp),
            Self::Verbs => Some(Carrier::Verbs),
            Self::Sim => None,
        }
    }
}

/// How many of the members send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Senders {
    /// Every member.
    All,
    /// Every other member.
    Half,
    /// The first member alone.
    One,
}

impl Senders {
    /// How many senders a group of so many members has.
    #[must_use]
    pub const fn of(self, nodes: u16) -> u16 {
        match self {
            Self::All => nodes,
            Self::Half => nodes.div_ceil(2),
            Self::One => 1,
        }
    }
}

/// Who steps the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Drive {
    /// The process's own loop, which also sends.
    Caller,
    /// A polling thread; the sending thread helps when it finds no free slot.
    Polled,
}

/// One of Spindle's techniques, to be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Technique {
    /// Send one message a step.
    SendBatching,
    /// Receive one message a step.
    ReceiveBatching,
    /// Deliver one message a step.
    DeliveryBatching,
    /// No null rounds.
    Nulls,
    /// Post after each stage.
    LatePosting,
    /// All of them: the paper's baseline.
    All,
}

/// The switches that are left without some techniques.
#[must_use]
pub fn switches_without(techniques: &[Technique]) -> Switches {
    techniques.iter().fold(Switches::all(), |switches, technique| {
        switches.difference(match technique {
            Technique::SendBatching => Switches::SEND_BATCHING,
            Technique::ReceiveBatching => Switches::RECEIVE_BATCHING,
            Technique::DeliveryBatching => Switches::DELIVERY_BATCHING,
            Technique::Nulls => Switches::NULLS,
            Technique::LatePosting => Switches::LATE_POSTING,
            Technique::All => Switches::all(),
        })
    })
}

/// `bench multicast`.
#[derive(Args, Clone, Debug)]
pub struct Multicast {
    /// What carries the writes
    #[arg(long, value_enum, default_value = "shm")]
    pub fabric: FabricKind,
    /// Members; several give several runs
    #[arg(long, value_delimiter = ',', default_values_t = [2_u16])]
    pub nodes: Vec<u16>,
    /// Which members send
    #[arg(long, value_enum, default_value = "all")]
    pub senders: Senders,
    /// Bytes of a message; several give several runs [default: 1,1024,10240, in the simulator 10240]
    #[arg(long, value_delimiter = ',')]
    pub bytes: Vec<u32>,
    /// Slots of each sender
    #[arg(long, default_value_t = 100)]
    pub window: u32,
    /// Messages of each sender [default: as many as take about half a second]
    #[arg(long)]
    pub messages: Option<u64>,
    /// Switch a technique off
    #[arg(long, value_enum, value_delimiter = ',')]
    pub without: Vec<Technique>,
    /// Neither write nor read the messages' bytes, as perftest does (not in the simulator)
    #[arg(long)]
    pub untouched: bool,
    /// A wait after each message, at the members of --delayed
    #[arg(long, default_value_t = 0)]
    pub delay_us: u64,
    /// Which senders wait after each message
    #[arg(long, value_enum, default_value = "one")]
    pub delayed: Senders,
    /// Who steps the member (not in the simulator)
    #[arg(long, value_enum, default_value = "caller")]
    pub drive: Drive,
    /// Runs of each; the median counts (not in the simulator)
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Run a probe without a protocol in turn with each run, and give the ratio: over shared memory the bare ring of two
    /// processes, over TCP a bare mesh of as many processes as there are members
    #[arg(long)]
    pub probe: bool,
    /// Let the operating system place the processes, instead of one after the other on each processor
    #[arg(long)]
    pub unpinned: bool,
    /// The seed of a simulated run
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Which device carries the writes.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Draw bytes a second over members into this SVG file
    #[arg(long)]
    pub plot: Option<PathBuf>,
}

/// `bench latency`.
#[derive(Args, Clone, Debug)]
pub struct Latency {
    /// What carries the writes
    #[arg(long, value_enum, default_value_t = Carrier::SharedMemory)]
    pub fabric: Carrier,
    /// Which device carries the writes.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// Members; the first sends
    #[arg(long, default_value_t = 2)]
    pub nodes: u16,
    /// Bytes of a message, at least 8
    #[arg(long, default_value_t = 8)]
    pub bytes: u32,
    /// Messages of each round
    #[arg(long, default_value_t = 20_000)]
    pub messages: u64,
    /// The wait between two messages
    #[arg(long, default_value_t = 10)]
    pub interval_us: u64,
    /// Only the first member is in the sender list, so that no null is owed
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
    /// Members
    #[arg(long, default_value_t = 4)]
    pub nodes: u16,
    /// How long to look
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

Every message that any member delivers is checked: lost, doubled, reordered, or delivered differently, and the
command ends with status 7.";

/// `bench views`.
#[derive(Args, Clone, Debug)]
pub struct Views {
    /// What carries the writes
    #[arg(long, value_enum, default_value_t = Carrier::SharedMemory)]
    pub fabric: Carrier,
    /// Members; all send
    #[arg(long, default_value_t = 4)]
    pub nodes: u16,
    /// How members go, in turn [default: kill, stop, leave]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub ways: Vec<super::views::Way>,
    /// How often one goes, and comes back
    #[arg(long, default_value_t = 30)]
    pub rounds: u32,
    /// A member without a heartbeat for so long is removed
    #[arg(long, default_value_t = 200)]
    pub failure_timeout_ms: u64,
    /// From one heartbeat to the next
    #[arg(long, default_value_t = 5)]
    pub heartbeat_ms: u64,
    /// Measure instead what heartbeats cost a group in which nothing changes
    #[arg(long)]
    pub steady: bool,
    /// Measure instead how fast large messages of so many bytes go in the one order, with one sender and with all
    #[arg(long, value_name = "BYTES", conflicts_with = "steady")]
    pub large: Option<usize>,
    /// Between two messages of each member
    #[arg(long, default_value_t = 200)]
    pub pace_us: u64,
    /// Up to so long the group runs undisturbed between two rounds
    #[arg(long, default_value_t = 100)]
    pub settle_ms: u64,
    /// What decides who goes when
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `bench worker`.
#[derive(Args, Clone, Debug)]
pub struct Worker {
    /// What to do, as JSON
    pub task: String,
}
