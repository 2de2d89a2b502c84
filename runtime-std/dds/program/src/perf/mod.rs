//! `tramontane-dds perf`: throughput and round-trip times of topics, measured with processes on
//! this machine.
//!
//! | file | subject |
//! |---|---|
//! | `messages` | messages between parent and participants |
//! | `participant` | the process of a participant |
//! | `publishing` | one publisher that writes without pause, and subscribers that count |
//! | `pinging` | one publisher whose samples are answered |
//! | `report` | the result, as a table or JSON |

mod messages;
mod participant;
mod pinging;
mod publishing;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tramontane_dds::{Domain, Level, TopicDescription};
use tramontane_local::crew::{Crew, Launch};
use tramontane_local::group::LocalGroup;
use tramontane_local::options::DeviceArguments;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Description;
use tramontane_runtime::shared_memory::Root;

use messages::{
    ANSWERS, DATA, Mode, PerfFigures, PerfOrder, PerfParticipant, PerfReport, PerfTask,
};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::{WindowOption, seconds};
use tramontane_local::output::print_result;

pub(crate) use participant::run as run_member;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 5] =
    [Status::Resources, Status::Group, Status::PeerLost, Status::Disagreement, Status::Device];

pub(super) const EXAMPLES: &str = "  tramontane-dds perf
      one publisher and one subscriber, 1 KB, level atomic, over shared memory
  tramontane-dds perf --subscribers 3 --bytes 10240 --level volatile --rounds 5
      the members keep the last samples for late readers
  tramontane-dds perf --mode ping --bytes 100 --json
      round trips; the result as JSON
  tramontane-dds perf --fabric tcp --level unordered
      delivered on receipt, over TCP on this machine";

/// Time limit for a participant to start, and for its report after the measuring time.
const PATIENCE: Duration = Duration::from_secs(60);

/// A level's name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LevelName {
    /// Delivered on receipt
    Unordered,
    /// One order over all writers
    Atomic,
    /// One order over all writers, and samples kept in memory for late readers
    Volatile,
    /// One order over all writers, and samples logged on disk
    Logged,
}

/// The kind of measurement on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// Samples per second, written without a pause
    Throughput,
    /// Round trips: a sample, and the answers of all subscribers
    Ping,
}

/// Measure a topic: one publisher and some subscribers, each in a process on this machine
#[derive(Args, Debug)]
pub(crate) struct PerfOptions {
    /// The kind of measurement
    #[arg(long, value_enum, default_value_t = ModeName::Throughput)]
    mode: ModeName,
    /// The number of subscribers
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    subscribers: u32,
    /// Size of each sample in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1024,
          value_parser = clap::value_parser!(u32).range(8..=16_777_216))]
    bytes: u32,
    /// The topic's level
    #[arg(long, value_enum, default_value_t = LevelName::Atomic)]
    level: LevelName,
    /// The duration of each round, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    seconds: Duration,
    /// The number of rounds
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Number of samples that the members keep, at the levels volatile and logged
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// The folder for logs, at the level logged: each round uses a subfolder, which is removed
    #[arg(long, value_name = "DIR", required_if_eq("level", "logged"))]
    data: Option<PathBuf>,
    #[command(flatten)]
    window: WindowOption,
    /// The fabric that carries the writes
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    fabric: Carrier,
    #[command(flatten)]
    device: DeviceArguments,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

impl PerfOptions {
    fn level(&self) -> Level {
        match self.level {
            LevelName::Unordered => Level::Unordered,
            LevelName::Atomic => Level::Atomic,
            LevelName::Volatile => Level::Volatile,
            LevelName::Logged => Level::Logged,
        }
    }

    fn task(&self) -> Result<PerfTask, Failure> {
        let nodes = self.subscribers + 1;
        let topic = |name| {
            let topic = TopicDescription::new(name, "Octets").level(self.level());
            TopicDescription { keep_depth: Some(self.keep), ..topic }
                .window(self.window.window)
                .sample_max(self.bytes + SEQUENCE_OVERHEAD)
        };
        let data = topic(DATA).publishers([0]).subscribers(1..nodes);
        let answers = topic(ANSWERS).publishers(1..nodes).subscribers([0]);
        let topics = match self.mode {
            ModeName::Throughput => vec![data],
            ModeName::Ping => vec![data, answers],
        };
        let group = Description::builder("dds-perf").nodes(nodes);
        let domain = Domain::new(group, topics)?;
        Ok(PerfTask {
            node: 0,
            group: domain.group().clone(),
            topics: domain.topics().to_vec(),
            place: tramontane_local::group::LocalPlace::default(),
            mode: match self.mode {
                ModeName::Throughput => Mode::Throughput,
                ModeName::Ping => Mode::Ping,
            },
            bytes: usize::try_from(self.bytes).unwrap_or(usize::MAX),
            time: self.seconds,
            data: None,
        })
    }
}

/// Size, in bytes, of the CDR before the content of a sequence.
const SEQUENCE_OVERHEAD: u32 = 4;

/// Runs the measurement.
pub(super) fn run(arguments: &PerfOptions) -> Result<(), Failure> {
    let task = arguments.task()?;
    let interrupts = Interrupts::watch()?;
    let mut rounds = Vec::new();
    for _ in 0..arguments.rounds {
        rounds.push(round(arguments, &task, &interrupts)?);
    }
    let result = report::Result::of(arguments, &rounds);
    print_result(arguments.json, &result, report::Result::table)
}

/// Runs one round in new processes, so that caches of the previous round do not matter. Returns
/// each participant's observations, the publisher's first.
fn round(
    arguments: &PerfOptions,
    task: &PerfTask,
    interrupts: &Interrupts,
) -> Result<Vec<PerfFigures>, Failure> {
    let nodes = task.group.nodes.len();
    let meeting =
        LocalGroup::new(arguments.fabric, nodes, "dds-perf", &arguments.device.options())?;
    let logs = match &arguments.data {
        Some(folder) if arguments.level() == Level::Logged => Some(
            tempfile::tempdir_in(folder)
                .map_err(|error| Failure::system("cannot create a folder for logs", &error))?,
        ),
        _ => None,
    };
    let mut crew = Crew::<PerfParticipant>::default();
    let mut workers = Vec::new();
    for (rank, node) in task.group.nodes.iter().enumerate() {
        let data = logs.as_ref().map(|logs| logs.path().join(rank.to_string()));
        let task = PerfTask { node: node.id, place: meeting.place(rank), data, ..task.clone() };
        let inherited = meeting.inherited(rank).into_iter().collect();
        workers.push(crew.start(&task, &Launch { inherited, processor: None })?);
    }
    // Only the members' sockets remain open.
    drop(meeting);
    for report in crew.reports(PATIENCE, interrupts)? {
        report.check()?;
    }
    for worker in workers {
        crew.order(worker, &PerfOrder::Begin)?;
    }
    let reports = crew.reports(PATIENCE + task.time, interrupts)?;
    drop(crew);
    Root::from_env().sweep()?;
    reports.into_iter().map(PerfReport::seen).collect()
}
