//! One configuration: a round of it, the probes in turn with that, and what all rounds came to.

use super::member::BlockTask;
use super::mpi::{self, Broadcast};
use super::pause::Pause;
use super::report::{Beside, Disturbed, Effect, Row};
use super::way::Way;
use crate::bench::BenchError;
use crate::bench::blocks::command::{Arguments, Experiment};
use crate::bench::blocks::disturbance::{self, Disturbance};
use crate::bench::blocks::report::{name, steps};
use crate::bench::processes::{self, Placement, Spread, Start, median};
use crate::bench::worker::{Kind, Outcome, Task};
use crate::cli::options::AlgorithmName;
use crate::configuration::GroupConfiguration;
use crate::local::{Carrier, LocalPlace};

/// Bytes that all receivers of a group get in a round, about: that many messages are measured.
const ROUND_BYTES: usize = 2 << 30;

/// The most messages of a round that are measured.
const MESSAGES_MAX: usize = 200;

/// The most where links are slow on purpose: a message takes as long as it is meant to, and not as the machine can.
const LIMITED_MESSAGES_MAX: usize = 5;

/// One configuration.
#[derive(Clone)]
pub(super) struct Case<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) carrier: Carrier,
    pub(super) experiment: Option<Experiment>,
    pub(super) nodes: u16,
    pub(super) bytes: usize,
    pub(super) part: BlockTask,
    pub(super) disturbance: Option<Disturbance>,
    /// The case before it that differs by the disturbance alone.
    pub(super) compared_with: Option<usize>,
}

/// What the rounds of a configuration came to, by round: milliseconds, but for the totals and the fairness.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) latencies: Vec<f64>,
    totals: Vec<f64>,
    fairness: Vec<f64>,
    /// What a disturbance cost: a share of the full bandwidth, or of the pause.
    effects: Vec<f64>,
    pauses: Vec<f64>,
    ways: Vec<MeasuredWay>,
    mpi: Vec<f64>,
}

/// What a probe came to.
#[derive(Debug, Default)]
struct MeasuredWay {
    latencies: Vec<f64>,
    /// Bytes a second of processor time.
    processor_rates: Vec<f64>,
}

impl Case<'_> {
    /// One round, and the probes in turn with it. `undisturbed_ms` is this round's figure of the case that this one is
    /// compared with. Says why there is nothing of MPI, if it should be there.
    pub(super) fn round(
        &self,
        undisturbed_ms: Option<f64>,
        broadcast: Option<&Broadcast>,
        measured: &mut Measured,
    ) -> Result<Option<String>, BenchError> {
        let task = self.task(undisturbed_ms);
        let placement = if self.arguments.pinned { Placement::Spread } else { Placement::Free };
        let start = Start { carrier: self.carrier, device: &self.arguments.device, placement };
        let outcomes = processes::run(&task, &start)?;
        let latency_ms = median_ms(outcomes.iter().flat_map(|outcome| &outcome.latency_ns));
        measured.latencies.push(latency_ms);
        let (total, fairness) = self.together(&outcomes);
        measured.totals.push(total);
        measured.fairness.push(fairness);
        if let Some(undisturbed_ms) = undisturbed_ms {
            self.note_effect(undisturbed_ms, latency_ms, &outcomes, measured)?;
        }
        if self.arguments.probe { self.probe(&task, &start, broadcast, measured) } else { Ok(None) }
    }

    fn note_effect(
        &self,
        undisturbed_ms: f64,
        latency_ms: f64,
        outcomes: &[Outcome],
        measured: &mut Measured,
    ) -> Result<(), BenchError> {
        match self.disturbance {
            None => {}
            Some(Disturbance::SlowLink(_)) => measured.effects.push(undisturbed_ms / latency_ms),
            Some(Disturbance::Pause { member, .. }) => {
                let paused_ns = outcomes.iter().flat_map(|outcome| &outcome.paused_ns);
                if paused_ns.clone().next().is_none() {
                    return Err(BenchError::Broken(format!("member {member} did not pause")));
                }
                let pause_ms = median_ms(paused_ns);
                measured.pauses.push(pause_ms);
                measured.effects.push((latency_ms - undisturbed_ms) / pause_ms);
            }
        }
        Ok(())
    }

    fn probe(
        &self,
        task: &Task,
        start: &Start<'_>,
        broadcast: Option<&Broadcast>,
        measured: &mut Measured,
    ) -> Result<Option<String>, BenchError> {
        measured.ways.resize_with(self.ways().len(), MeasuredWay::default);
        for (way, measured) in self.ways().iter().zip(&mut measured.ways) {
            let kind = Kind::BlockLimit { warm_ups: self.part.warm_ups, way: *way };
            let outcomes = processes::run(&Task { kind, ..task.clone() }, start)?;
            measured.latencies.push(median_ms(&outcomes[0].latency_ns));
            let worked_ns: u64 = outcomes.iter().map(|outcome| outcome.copying_ns).sum();
            let copies = (self.nodes - 1) as usize * self.bytes;
            let bytes = copies as f64 * task.messages as f64;
            measured.processor_rates.push(bytes * 1e9 / worked_ns.max(1) as f64);
        }
        let Some(broadcast) = broadcast else { return Ok(None) };
        match broadcast.run(usize::from(self.nodes), self.bytes, self.part.warm_ups, task.messages)
        {
            Ok(times) => measured.mpi.push(median_ms(&times)),
            Err(why) => return Ok(Some(why)),
        }
        Ok(None)
    }

    fn ways(&self) -> &[Way] {
        if self.arguments.ways.is_empty() { &Way::USUAL } else { &self.arguments.ways }
    }

    /// What all rounds came to.
    pub(super) fn row(&self, measured: &Measured) -> Row {
        let latency_ms = Spread::of(&measured.latencies);
        Row {
            experiment: self.experiment,
            fabric: self.carrier.name(),
            algorithm: self.part.algorithm.of_no_racks().map_or("hybrid", name),
            nodes: self.nodes,
            groups: self.part.senders,
            bytes: self.bytes,
            block_bytes: self.part.block_bytes,
            receives: self.part.receives,
            sends: self.part.sends,
            ahead: self.part.ahead,
            link_bytes_per_s: self.part.link_bytes_per_s,
            latency_ms,
            bytes_per_s: self.bytes as f64 * 1e3 / latency_ms.median,
            total_bytes_per_s: Spread::of(&measured.totals),
            fairness: Spread::of(&measured.fairness),
            disturbance: self.disturbance.map(|disturbance| self.disturbed(disturbance, measured)),
            probes: self.probes(measured),
        }
    }

    fn disturbed(&self, disturbance: Disturbance, measured: &Measured) -> Disturbed {
        let effect = match disturbance {
            Disturbance::SlowLink(link) => Effect::SlowLink {
                link: link.to_string(),
                share: Spread::of(&measured.effects),
                share_least: disturbance::share_left(self.steps(), usize::from(self.nodes)),
            },
            Disturbance::Pause { member, blocks } => Effect::Pause {
                member,
                blocks,
                ms: Spread::of(&measured.pauses),
                cost: Spread::of(&measured.effects),
                cost_most: 1.0,
            },
        };
        Disturbed { effect, is_analysed: self.part.algorithm == AlgorithmName::Pipeline }
    }

    fn probes(&self, measured: &Measured) -> Vec<Beside> {
        if measured.ways.is_empty() {
            return Vec::new();
        }
        let beside = |probe: &'static str, times: &[f64], processor_rates: Option<&[f64]>| Beside {
            probe,
            ms: Spread::of(times),
            by_row: Spread::of(
                &times
                    .iter()
                    .zip(&measured.latencies)
                    .map(|(time, row)| time / row)
                    .collect::<Vec<_>>(),
            ),
            bytes_per_processor_s: processor_rates.map(Spread::of),
        };
        let ways = self.ways().iter().zip(&measured.ways);
        let mut probes: Vec<Beside> = ways
            .map(|(way, ran)| beside(way.name(), &ran.latencies, Some(&ran.processor_rates)))
            .collect();
        if measured.mpi.len() == measured.latencies.len() {
            probes.push(beside(mpi::NAME, &measured.mpi, None));
        }
        probes
    }

    fn steps(&self) -> u64 {
        let algorithm = self.part.algorithm.of_no_racks();
        algorithm.map_or(0, |algorithm| {
            steps(algorithm, usize::from(self.nodes), self.bytes, self.part.block_bytes)
        })
    }

    fn task(&self, undisturbed_ms: Option<f64>) -> Task {
        let copies = usize::from(self.nodes - 1) * usize::from(self.part.senders);
        let most =
            if self.part.link_bytes_per_s.is_some() { LIMITED_MESSAGES_MAX } else { MESSAGES_MAX };
        let usual = (ROUND_BYTES / self.bytes / copies).clamp(3, most) as u64;
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
            kind: Kind::Blocks(self.disturbed_part(undisturbed_ms)),
        }
    }

    /// What each member is told.
    fn disturbed_part(&self, undisturbed_ms: Option<f64>) -> BlockTask {
        match (self.disturbance, undisturbed_ms) {
            (Some(Disturbance::SlowLink(link)), _) => {
                BlockTask { slow_link: Some(link), ..self.part }
            }
            (Some(Disturbance::Pause { member, blocks }), Some(undisturbed_ms)) => {
                let block_ns = undisturbed_ms * 1e6 / self.steps().max(1) as f64;
                let pause = Pause { member, lasting_ns: (block_ns * f64::from(blocks)) as u64 };
                BlockTask { pause: Some(pause), ..self.part }
            }
            (None, _) | (Some(Disturbance::Pause { .. }), None) => self.part,
        }
    }

    /// Bytes a second of all groups together, and the slowest group's by the fastest's.
    fn together(&self, outcomes: &[Outcome]) -> (f64, f64) {
        let spans: Vec<(u64, u64)> =
            outcomes.iter().filter_map(|outcome| outcome.span_ns).collect();
        let begin = spans.iter().map(|span| span.0).min().unwrap_or(0);
        let end = spans.iter().map(|span| span.1).max().unwrap_or(0);
        let bytes: f64 =
            outcomes.iter().map(|outcome| (outcome.latency_ns.len() * self.bytes) as f64).sum();
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
