//! Block groups of real processes, over shared memory or TCP, in turn with what the machine can do and with
//! Open MPI's `MPI_Bcast`.
//!
//! | file | what it holds |
//! |---|---|
//! | `member` | one process of block groups, and what is timed |
//! | `hearing` | what a root hears of its receivers |
//! | `limit` | the machine's limit: a `memcpy` at each receiver, or bytes read where they lie |
//! | `mpi` | `MPI_Bcast`, of a program in C that is compiled when it is asked for |
//! | `clock` | one clock for all processes, and the marks of a message |
//! | `report` | rows, as text and JSON |

mod clock;
mod hearing;
pub(in crate::bench) mod limit;
pub(in crate::bench) mod member;
mod mpi;
mod report;

use std::io::Write;
use std::time::Duration;

use clap::ValueEnum as _;
use indicatif::ProgressBar;

use super::command::Arguments;
use super::report::name;
use crate::bench::command::{FabricKind, Senders};
use crate::bench::processes::{self, Placement, Spread, Start, median};
use crate::bench::report::machine;
use crate::bench::worker::{Kind, Outcome, Task};
use crate::bench::{BenchError, bar, print};
use crate::blocks::GroupOptions;
use crate::cli::options::AlgorithmName;
use crate::configuration::GroupConfiguration;
use crate::local::{Carrier, LocalPlace};
use crate::rdma::DeviceOptions;
use member::{BlockTask, RACKS};
use mpi::Broadcast;
use report::{Beside, Printed, Probes, Row};

/// Members of a group. Each has a group for what it says to each root, and memory for all of them.
const NODES_MAX: usize = 12;

/// The largest message: what MPI counts, and a time of four seconds.
const BYTES_MAX: usize = 1 << 30;

/// Messages before those that count: memory is mapped and pages are found at the first.
const WARM_UPS: u64 = 3;

/// Bytes that all receivers of a group get in a round, about: that many messages are measured.
const ROUND_BYTES: usize = 2 << 30;

/// The most messages of a round that are measured.
const MESSAGES_MAX: usize = 200;

/// One configuration.
struct Case<'a> {
    arguments: &'a Arguments,
    carrier: Carrier,
    nodes: u16,
    bytes: usize,
    part: BlockTask,
}

/// Runs all configurations that are asked for.
pub(super) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), BenchError> {
    let carrier = match arguments.fabric {
        FabricKind::Shm => Carrier::SharedMemory,
        FabricKind::Tcp => Carrier::Tcp,
        FabricKind::Verbs | FabricKind::Sim => {
            let what = "blocks are carried over shared memory and TCP: give --fabric shm or tcp, or sim";
            return Err(BenchError::Arguments(what.into()));
        }
    };
    check(arguments, carrier)?;
    let cases = cases(arguments, carrier)?;
    let (broadcast, mut note) = match arguments.probe.then(Broadcast::compile) {
        None => (None, None),
        Some(Ok(broadcast)) => (Some(broadcast), None),
        Some(Err(note)) => (None, Some(note)),
    };
    let progress = ProgressBar::new((cases.len() * arguments.rounds) as u64).with_style(bar());
    progress.enable_steady_tick(Duration::from_millis(200));
    let mut measured: Vec<Measured> = cases.iter().map(|_| Measured::default()).collect();
    // All in turn, round by round: what else the machine does meets all alike.
    for _ in 0..arguments.rounds {
        for (case, measured) in cases.iter().zip(&mut measured) {
            progress.set_message(format!("{} members, {} bytes", case.nodes, case.bytes));
            if let Some(why) = case.round(broadcast.as_ref(), measured)? {
                note = Some(why);
            }
            progress.inc(1);
        }
    }
    let rows = cases.iter().zip(&measured).map(|(case, measured)| case.row(measured)).collect();
    progress.finish_and_clear();
    let printed = Printed { machine: machine(), rows, note };
    print(out, arguments.json, &printed, || printed.text())
}

fn check(arguments: &Arguments, carrier: Carrier) -> Result<(), BenchError> {
    let refused = |what: String| Err(BenchError::Arguments(what));
    if !arguments.experiment.is_empty() {
        return refused("--experiment is of the simulator: leave it out, or give --fabric sim".into());
    }
    if arguments.plot.is_some() {
        return refused("--plot draws what was simulated: leave it out, or give --fabric sim".into());
    }
    if arguments.rounds == 0 {
        return refused("--rounds is 0: at least one run is needed".into());
    }
    if let Some(nodes) = arguments.nodes.iter().find(|nodes| !(2..=NODES_MAX).contains(*nodes)) {
        return refused(format!("--nodes is {nodes}: from 2 to {NODES_MAX} are measured"));
    }
    if let Some(bytes) = arguments.bytes.iter().find(|bytes| !(1..=BYTES_MAX).contains(*bytes)) {
        return refused(format!("--bytes is {bytes}: from 1 to {BYTES_MAX} are measured"));
    }
    if let Some(bytes) = arguments.block.iter().find(|bytes| !(1..=BYTES_MAX).contains(*bytes)) {
        return refused(format!("--block is {bytes}: from 1 to {BYTES_MAX} are measured"));
    }
    if arguments.probe && (carrier != Carrier::SharedMemory || arguments.senders != Senders::One) {
        return refused(
            "--probe is of one sender over shared memory: leave it out, or --fabric shm --senders one".into(),
        );
    }
    Ok(())
}

/// Everything with everything.
fn cases(arguments: &Arguments, carrier: Carrier) -> Result<Vec<Case<'_>>, BenchError> {
    let sizes = if arguments.bytes.is_empty() { vec![1 << 20, 16 << 20] } else { arguments.bytes.clone() };
    let mut cases = Vec::new();
    for nodes in arguments.members(&[4]) {
        let nodes = u16::try_from(nodes).unwrap_or(u16::MAX);
        for bytes in &sizes {
            let usual = usual(carrier, *bytes);
            let some = |given: &[AlgorithmName]| {
                if given.is_empty() { vec![usual.algorithm] } else { given.to_vec() }
            };
            for algorithm in some(&arguments.algorithm) {
                algorithm.of_no_racks().ok_or_else(|| BenchError::Arguments(RACKS.into()))?;
                let blocks = if arguments.block.is_empty() {
                    vec![usual.block_bytes]
                } else {
                    arguments.block.clone()
                };
                for block_bytes in blocks {
                    let (receives, sends) =
                        arguments.window.map_or((usual.receives, usual.sends), |window| (window, window));
                    let part = BlockTask { algorithm, block_bytes, receives, sends, ..usual };
                    let senders = arguments.senders.of(nodes);
                    let ahead = if senders > 1 { 2 } else { 1 };
                    let part = BlockTask { senders, ahead, ..part };
                    cases.push(Case { arguments, carrier, nodes, bytes: *bytes, part });
                }
            }
        }
    }
    Ok(cases)
}

/// What a group takes where nothing is said.
fn usual(carrier: Carrier, bytes: usize) -> BlockTask {
    let options = GroupOptions::for_fabric(carrier, bytes);
    let is_usual = |name: &AlgorithmName| name.of_no_racks() == Some(options.algorithm);
    BlockTask {
        algorithm: AlgorithmName::value_variants()
            .iter()
            .copied()
            .find(is_usual)
            .unwrap_or(AlgorithmName::Pipeline),
        block_bytes: options.block_bytes,
        receives: options.window.receives,
        sends: options.window.sends,
        senders: 1,
        warm_ups: WARM_UPS,
        ahead: 1,
    }
}

/// What the rounds of a configuration came to: milliseconds, but for the totals and the fairness.
#[derive(Debug, Default)]
struct Measured {
    latencies: Vec<f64>,
    totals: Vec<f64>,
    fairness: Vec<f64>,
    copied: Vec<f64>,
    lent: Vec<f64>,
    mpi: Vec<f64>,
}

impl Case<'_> {
    /// One round, and the probes in turn with it. Why there is nothing of MPI, if it should be there.
    fn round(
        &self,
        broadcast: Option<&Broadcast>,
        measured: &mut Measured,
    ) -> Result<Option<String>, BenchError> {
        let task = self.task();
        let device = DeviceOptions::default();
        let placement = if self.arguments.pinned { Placement::Spread } else { Placement::Free };
        let start = Start { carrier: self.carrier, device: &device, placement };
        let outcomes = processes::run(&task, &start)?;
        measured.latencies.push(median_ms(outcomes.iter().flat_map(|outcome| &outcome.latency_ns)));
        let (total, fairness) = self.together(&outcomes);
        measured.totals.push(total);
        measured.fairness.push(fairness);
        if !self.arguments.probe {
            return Ok(None);
        }
        for (times, is_lent) in [(&mut measured.copied, false), (&mut measured.lent, true)] {
            let kind = Kind::BlockLimit { warm_ups: self.part.warm_ups, is_lent };
            let outcomes = processes::run(&Task { kind, ..task.clone() }, &start)?;
            times.push(median_ms(&outcomes[0].latency_ns));
        }
        let Some(broadcast) = broadcast else { return Ok(None) };
        match broadcast.run(usize::from(self.nodes), self.bytes, self.part.warm_ups, task.messages) {
            Ok(times) => measured.mpi.push(median_ms(&times)),
            Err(why) => return Ok(Some(why)),
        }
        Ok(None)
    }

    fn row(&self, measured: &Measured) -> Row {
        let Measured { latencies, totals, fairness, copied, lent, mpi } = measured;
        let beside = |times: &[f64]| Beside {
            ms: Spread::of(times),
            by_row: Spread::of(
                &times.iter().zip(latencies).map(|(time, row)| time / row).collect::<Vec<_>>(),
            ),
        };
        let is_whole = mpi.len() == latencies.len();
        let probes = self.arguments.probe.then(|| Probes {
            memcpy: beside(copied),
            lent: beside(lent),
            mpi: is_whole.then(|| beside(mpi)),
        });
        let latency_ms = Spread::of(latencies);
        Row {
            fabric: match self.carrier {
                Carrier::SharedMemory => "shm",
                Carrier::Tcp => "tcp",
                Carrier::Verbs => "verbs",
            },
            algorithm: self.part.algorithm.of_no_racks().map_or("hybrid", name),
            nodes: self.nodes,
            groups: self.part.senders,
            bytes: self.bytes,
            block_bytes: self.part.block_bytes,
            receives: self.part.receives,
            sends: self.part.sends,
            ahead: self.part.ahead,
            latency_ms,
            bytes_per_s: self.bytes as f64 * 1e3 / latency_ms.median,
            total_bytes_per_s: Spread::of(totals),
            fairness: Spread::of(fairness),
            probes,
        }
    }

    fn task(&self) -> Task {
        let copies = usize::from(self.nodes - 1) * usize::from(self.part.senders);
        let usual = (ROUND_BYTES / self.bytes / copies).clamp(3, MESSAGES_MAX) as u64;
        Task {
            place: LocalPlace::default(),
            node: 0,
            // Of the multicast's configuration only the members are used.
            group: GroupConfiguration::single(self.nodes, 1, 1, 8),
            bytes: self.bytes,
            messages: self.arguments.messages.unwrap_or(usual),
            processor: None,
            switches: 0,
            untouched: false,
            delay_ns: 0,
            delayed: 0,
            kind: Kind::Blocks(self.part),
        }
    }

    /// Bytes a second of all groups together, and the slowest group's by the fastest's.
    fn together(&self, outcomes: &[Outcome]) -> (f64, f64) {
        let spans: Vec<(u64, u64)> = outcomes.iter().filter_map(|outcome| outcome.span_ns).collect();
        let begin = spans.iter().map(|span| span.0).min().unwrap_or(0);
        let end = spans.iter().map(|span| span.1).max().unwrap_or(0);
        let bytes: f64 = outcomes.iter().map(|outcome| (outcome.latency_ns.len() * self.bytes) as f64).sum();
        let took = |(begin, end): &(u64, u64)| end.saturating_sub(*begin).max(1) as f64;
        let fastest = spans.iter().map(took).fold(f64::INFINITY, f64::min);
        let slowest = spans.iter().map(took).fold(0.0, f64::max);
        (bytes * 1e9 / took(&(begin, end)), fastest / slowest)
    }
}

/// The median of some nanoseconds, in milliseconds.
fn median_ms<'t>(times: impl IntoIterator<Item = &'t u32>) -> f64 {
    median(&times.into_iter().map(|time| f64::from(*time) / 1e6).collect::<Vec<_>>())
}
