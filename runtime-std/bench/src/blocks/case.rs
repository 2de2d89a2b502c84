//! One configuration: its rounds, the probes that alternate with them, and the results of all
//! rounds.

use super::command::BlocksArguments;
use super::limit::{CopyLimit, Method};
use super::report::{Beside, BlocksRow};
use super::task::{BlockOutcome, BlockTask, Span};
use crate::error::BenchError;
use crate::experiment;
use crate::processes::{self, Placement, Start};
use crate::spread::{Spread, median};
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Description;

/// Approximate number of bytes that all receivers of a group receive in a round. It determines the
/// number of measured messages.
const ROUND_BYTES: usize = 2 << 30;

/// Maximum number of measured messages in a round.
const MESSAGES_MAX: usize = 200;

/// One configuration.
pub(super) struct BlocksCase<'a> {
    pub(super) arguments: &'a BlocksArguments,
    pub(super) carrier: Carrier,
    pub(super) nodes: u16,
    /// The task of each member, except for the number of messages.
    pub(super) task: BlockTask,
}

/// The results of a configuration, by round: in milliseconds, except for the totals and the
/// fairness.
#[derive(Debug, Default)]
pub(super) struct Measured {
    latencies: Vec<f64>,
    totals: Vec<f64>,
    fairness: Vec<f64>,
    methods: Vec<MeasuredMethod>,
}

/// The results of a probe.
#[derive(Debug, Default)]
struct MeasuredMethod {
    latencies: Vec<f64>,
    /// Bytes per second of processor time.
    processor_rates: Vec<f64>,
}

impl BlocksCase<'_> {
    /// Runs one round, alternating with the probes.
    pub(super) fn round(
        &self,
        interrupts: &Interrupts,
        measured: &mut Measured,
    ) -> Result<(), BenchError> {
        let task = self.round_task();
        let start = Start {
            carrier: self.carrier,
            device: &self.arguments.device.options(),
            placement: Placement::Free,
            interrupts,
        };
        let outcomes = processes::run(&self.group()?, &task, &start)?;
        let latency_ms = median_ms(outcomes.iter().flat_map(|outcome| &outcome.latency_ns));
        measured.latencies.push(latency_ms);
        let (total, fairness) = self.together(&outcomes);
        measured.totals.push(total);
        measured.fairness.push(fairness);
        if self.arguments.probe {
            self.probe(&task, &start, measured)?;
        }
        Ok(())
    }

    /// Returns the group's description. Only the members of the multicast's configuration are used.
    fn group(&self) -> Result<Description, BenchError> {
        Ok(experiment::group(self.nodes, 1, 1, 8).fixed().build()?)
    }

    fn probe(
        &self,
        task: &BlockTask,
        start: &Start<'_>,
        measured: &mut Measured,
    ) -> Result<(), BenchError> {
        let BlockTask { message_bytes, messages, warm_ups, .. } = *task;
        measured.methods.resize_with(Method::ALL.len(), MeasuredMethod::default);
        for (method, measured) in Method::ALL.into_iter().zip(&mut measured.methods) {
            let limit = CopyLimit { message_bytes, messages, warm_ups, method };
            let outcomes = processes::run(&self.group()?, &limit, start)?;
            measured.latencies.push(median_ms(&outcomes[0].latency_ns));
            let worked_ns: u64 = outcomes.iter().map(|outcome| outcome.copying_ns).sum();
            let copies = (self.nodes - 1) as usize * message_bytes;
            let bytes = copies as f64 * messages as f64;
            measured.processor_rates.push(bytes * 1e9 / worked_ns.max(1) as f64);
        }
        Ok(())
    }

    /// Summarises the results of all rounds.
    pub(super) fn row(&self, measured: &Measured) -> BlocksRow {
        let latency_ms = Spread::of(&measured.latencies);
        BlocksRow {
            fabric: self.carrier.name(),
            algorithm: self.task.algorithm,
            nodes: self.nodes,
            groups: self.task.senders,
            bytes: self.task.message_bytes,
            block_bytes: self.task.block_bytes,
            receives: self.task.receives,
            sends: self.task.sends,
            ahead: self.task.ahead,
            latency_ms,
            bytes_per_s: self.task.message_bytes as f64 * 1e3 / latency_ms.median,
            total_bytes_per_s: Spread::of(&measured.totals),
            fairness: Spread::of(&measured.fairness),
            probes: self.probes(measured),
        }
    }

    fn probes(&self, measured: &Measured) -> Vec<Beside> {
        let by_row = |ran: &MeasuredMethod| -> Vec<f64> {
            let both = ran.latencies.iter().zip(&measured.latencies);
            both.map(|(time, row)| time / row).collect()
        };
        let beside = |(method, ran): (Method, &MeasuredMethod)| Beside {
            probe: method,
            latency_ms: Spread::of(&ran.latencies),
            by_row: Spread::of(&by_row(ran)),
            bytes_per_processor_s: Spread::of(&ran.processor_rates),
        };
        Method::ALL.into_iter().zip(&measured.methods).map(beside).collect()
    }

    /// Returns the task of each member in a round.
    fn round_task(&self) -> BlockTask {
        let copies = usize::from(self.nodes - 1) * usize::from(self.task.senders);
        let usual = (ROUND_BYTES / self.task.message_bytes / copies).clamp(3, MESSAGES_MAX) as u64;
        BlockTask { messages: self.arguments.messages.unwrap_or(usual), ..self.task }
    }

    /// Returns the bytes per second of all groups together, and the ratio of the slowest group's
    /// rate to the fastest's.
    fn together(&self, outcomes: &[BlockOutcome]) -> (f64, f64) {
        let spans: Vec<Span> = outcomes.iter().filter_map(|outcome| outcome.span).collect();
        let all = Span {
            begin_ns: spans.iter().map(|span| span.begin_ns).min().unwrap_or(0),
            end_ns: spans.iter().map(|span| span.end_ns).max().unwrap_or(0),
        };
        let messages: usize = outcomes.iter().map(|outcome| outcome.latency_ns.len()).sum();
        let bytes = messages as f64 * self.task.message_bytes as f64;
        let lengths = spans.iter().map(|span| span.length_ns() as f64);
        let fastest = lengths.clone().fold(f64::INFINITY, f64::min);
        let slowest = lengths.fold(0.0, f64::max);
        (bytes * 1e9 / all.length_ns() as f64, fastest / slowest)
    }
}

/// Returns the median, in milliseconds, of some durations in nanoseconds.
fn median_ms<'t>(times: impl IntoIterator<Item = &'t u32>) -> f64 {
    median(&times.into_iter().map(|time| f64::from(*time) / 1e6).collect::<Vec<_>>())
}
