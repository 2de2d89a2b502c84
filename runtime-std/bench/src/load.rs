//! Latency under load: all members send at a share of the highest rate that the group reaches, and
//! every member records how long after its due time each message is delivered.
//!
//! The time of a message begins when it is due, not when a slot is free for it. Otherwise messages
//! that wait for a slot would seem fast.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use tramontane_core::multicast::Switches;

use crate::error::BenchError;
use crate::experiment::{Experiment, ExperimentMember, JOIN_LIMIT, Kind, group};
use crate::machine::machine;
use crate::member::{ALL, start};
use crate::plot::{Drawing, DrawnSeries, Stroke};
use crate::processes::{self, Placement, Start};
use crate::real::messages_default;
use crate::spread::{Spread, median};
use crate::text::{ReportTable, text};
use crate::touch;
use tramontane_local::clock::now_ns;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Application, Messages, Running};
use tramontane_runtime::member::Idle;
use tramontane_runtime::rdma::DeviceOptions;

/// Bytes of a message that contain its due time.
const STAMP_BYTES: u32 = 8;

/// The largest number of messages of a sender in one run, so that the times fit into memory.
const MESSAGES_MAX: u64 = 4_000_000;

/// Examples for the help text.
pub(crate) const EXAMPLES: &str = "Examples:
    tramontane-lab bench load
    tramontane-lab bench load --fabric tcp --nodes 3 --bytes 1024 --draw load.svg

A share of 100 sends as fast as possible. There, messages wait for slots.";

/// Arguments of `bench load`.
#[derive(Args, Clone, Debug)]
pub struct LoadArguments {
    /// The fabric: shm or tcp
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    pub fabric: Carrier,
    /// The number of members, all of which send
    #[arg(long, default_value_t = 2)]
    pub nodes: u16,
    /// Size of a message in bytes, at least 8; several values give several runs
    #[arg(long, value_delimiter = ',', default_values_t = [8_u32, 1_024])]
    pub bytes: Vec<u32>,
    /// Number of slots per sender
    #[arg(long, default_value_t = 100)]
    pub window: u32,
    /// Shares of the highest rate, in percent
    #[arg(long, value_delimiter = ',', default_values_t = [10_u32, 50, 90],
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub shares: Vec<u32>,
    /// Number of messages per sender [default: enough for about half a second]
    #[arg(long)]
    pub messages: Option<u64>,
    /// Number of runs of each share; the median is reported
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Draw the latencies into this SVG file
    #[arg(long, value_name = "FILE", value_parser = crate::output::file)]
    pub draw: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Sending at a given rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Paced {
    message_bytes: usize,
    /// Number of messages per sender, in addition to the first, at which all members begin.
    messages: u64,
    /// Time between two messages of a sender in picoseconds; 0 sends as fast as possible.
    interval_ps: u64,
}

/// The measurements of one process of [`Paced`]. Times are in nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PacedFigures {
    /// Messages delivered here per second, including the member's own.
    messages_per_s: f64,
    p50_ns: u32,
    p99_ns: u32,
    p999_ns: u32,
    max_ns: u32,
}

/// Records the time since each message was due.
struct DueTimes {
    latency_ns: Vec<u32>,
}

impl Application for DueTimes {
    #[inline]
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let now_ns = now_ns();
        for message in messages {
            touch::read(message.payload);
            let due = message.payload.first_chunk().map_or(now_ns, |raw| u64::from_ne_bytes(*raw));
            self.latency_ns.push(now_ns.saturating_sub(due).try_into().unwrap_or(u32::MAX));
        }
    }
}

impl Experiment for Paced {
    const KIND: Kind = Kind::Paced;
    type Outcome = PacedFigures;

    fn run(&self, own: &ExperimentMember) -> Result<(PacedFigures, Option<Running>), BenchError> {
        let total = own.messages_of_all(self.messages);
        let latency_ns = Vec::with_capacity(total as usize);
        let mut member = start(own, Switches::all(), DueTimes { latency_ns })?;
        let mut sender = member.sender_of(ALL);
        if let Some(sender) = &mut sender {
            sender.send(&[0; STAMP_BYTES as usize], JOIN_LIMIT)?;
        }
        let mut met = 0;
        while met < own.senders().len() as u64 {
            met += member.step()?.progress.delivered;
        }
        // Messages that others have sent meanwhile.
        let mut delivered = met - own.senders().len() as u64;
        member.application().latency_ns.clear();
        let first = delivered;
        let begun_ns = now_ns();
        let mut idle = Idle::new(Duration::MAX);
        let mut sent = 0;
        while delivered < total {
            let now_ns = now_ns();
            let due = match self.interval_ps {
                0 => self.messages,
                interval => ((now_ns - begun_ns) * 1_000 / interval + 1).min(self.messages),
            };
            if sent < due
                && let Some(sender) = &mut sender
                && let Ok(mut run) =
                    sender.try_reserve_run(u32::try_from(due - sent).unwrap_or(u32::MAX))
            {
                while let Ok(Some(mut slot)) = run.next(self.message_bytes) {
                    let due_ns = match self.interval_ps {
                        0 => now_ns,
                        interval => begun_ns + sent * interval / 1_000,
                    };
                    touch::write(slot.payload(), sent);
                    slot.payload()[..STAMP_BYTES as usize].copy_from_slice(&due_ns.to_ne_bytes());
                    slot.commit();
                    sent += 1;
                }
            }
            let step = member.step()?;
            delivered += step.progress.delivered;
            if !step.is_idle() {
                idle.reset();
            } else if idle.pause() {
                std::thread::yield_now();
            }
        }
        let seconds = now_ns().saturating_sub(begun_ns) as f64 / 1e9;
        let mut latency_ns = std::mem::take(&mut member.application().latency_ns);
        let figures = PacedFigures {
            messages_per_s: (total - first) as f64 / seconds,
            ..PacedFigures::of(&mut latency_ns)
        };
        Ok((figures, Some(member.spawn().map_err(tramontane_runtime::group::StartError::from)?)))
    }
}

impl PacedFigures {
    fn of(latency_ns: &mut [u32]) -> Self {
        latency_ns.sort_unstable();
        let at = |per_mille: usize| {
            let index = (latency_ns.len() * per_mille).div_ceil(1_000).saturating_sub(1);
            latency_ns.get(index).copied().unwrap_or(0)
        };
        Self {
            messages_per_s: 0.0,
            p50_ns: at(500),
            p99_ns: at(990),
            p999_ns: at(999),
            max_ns: at(1_000),
        }
    }
}

/// The output of `bench load`.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// The machine on which this ran.
    pub machine: String,
    /// The fabric: `shm` or `tcp`.
    pub fabric: &'static str,
    /// The number of members.
    pub nodes: u16,
    /// One row for each size and share.
    pub rows: Vec<LoadRow>,
}

/// The latencies at one share of the highest rate, each at the slowest member.
#[derive(Clone, Debug, Serialize)]
pub struct LoadRow {
    /// Size of a message in bytes.
    pub bytes: u32,
    /// The requested share of the highest rate, in percent.
    pub share_percent: u32,
    /// Messages delivered per second at the median member, its own and others' together.
    pub messages_per_s: Spread,
    /// Median time from a message's due time to its delivery, in ns.
    pub p50_ns: Spread,
    /// The 99th percentile of this time.
    pub p99_ns: Spread,
    /// The 99.9th percentile of this time.
    pub p999_ns: Spread,
    /// The longest of these times.
    pub max_ns: Spread,
}

/// Runs `bench load`.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(
    arguments: &LoadArguments,
    interrupts: &Interrupts,
) -> Result<LoadReport, BenchError> {
    if arguments.rounds == 0 || arguments.nodes == 0 {
        return Err(BenchError::Arguments("--rounds and --nodes must be at least 1".into()));
    }
    if arguments.fabric == Carrier::Verbs {
        return Err(BenchError::Arguments("give --fabric shm or --fabric tcp".into()));
    }
    let device = DeviceOptions::default();
    let start = Start {
        carrier: arguments.fabric,
        device: &device,
        placement: Placement::Spread,
        interrupts,
    };
    let mut rows = Vec::new();
    for bytes in &arguments.bytes {
        rows.extend(measure(arguments, *bytes.max(&STAMP_BYTES), &start)?);
    }
    let (fabric, nodes) = (arguments.fabric.name(), arguments.nodes);
    let report = LoadReport { machine: machine(), fabric, nodes, rows };
    if let Some(path) = &arguments.draw {
        report.drawing().write(path)?;
    }
    Ok(report)
}

/// Measures all shares with messages of one size.
fn measure(
    arguments: &LoadArguments,
    bytes: u32,
    start: &Start<'_>,
) -> Result<Vec<LoadRow>, BenchError> {
    let LoadArguments { fabric, nodes, shares, .. } = arguments;
    let group = group(*nodes, *nodes, arguments.window, bytes).fixed().build()?;
    let run = |messages: u64, interval_ps: u64| {
        let messages = arguments.messages.unwrap_or(messages).clamp(1, MESSAGES_MAX);
        let paced = Paced { message_bytes: bytes as usize, messages, interval_ps };
        processes::run(&group, &paced, start)
    };
    let mut rounds = vec![Vec::new(); shares.len()];
    for _ in 0..arguments.rounds {
        let fastest = run(messages_default(*fabric, bytes, *nodes), 0)?;
        for (share, rounds) in shares.iter().zip(&mut rounds) {
            if *share == 100 {
                rounds.push(fastest.clone());
                continue;
            }
            let of_sender = rate(&fastest) * f64::from(*share) / 100.0 / f64::from(*nodes);
            // For half a second.
            rounds.push(run((of_sender / 2.0) as u64, (1e12 / of_sender) as u64)?);
        }
    }
    Ok(shares
        .iter()
        .zip(&rounds)
        .map(|(share, rounds)| LoadRow::of(bytes, *share, rounds))
        .collect())
}

/// Returns the rate at the median member.
fn rate(outcomes: &[PacedFigures]) -> f64 {
    median(&outcomes.iter().map(|outcome| outcome.messages_per_s).collect::<Vec<_>>())
}

impl LoadRow {
    fn of(bytes: u32, share_percent: u32, rounds: &[Vec<PacedFigures>]) -> Self {
        let slowest = |time: fn(&PacedFigures) -> u32| {
            let round = |outcomes: &Vec<PacedFigures>| outcomes.iter().map(time).max();
            let rounds = rounds.iter().filter_map(round).map(f64::from);
            Spread::of(&rounds.collect::<Vec<_>>())
        };
        Self {
            bytes,
            share_percent,
            messages_per_s: Spread::of(&rounds.iter().map(|round| rate(round)).collect::<Vec<_>>()),
            p50_ns: slowest(|outcome| outcome.p50_ns),
            p99_ns: slowest(|outcome| outcome.p99_ns),
            p999_ns: slowest(|outcome| outcome.p999_ns),
            max_ns: slowest(|outcome| outcome.max_ns),
        }
    }

    /// Returns the times with their names.
    fn times(&self) -> [(&'static str, Spread); 4] {
        [("p50", self.p50_ns), ("p99", self.p99_ns), ("p99.9", self.p999_ns), ("max", self.max_ns)]
    }
}

impl LoadReport {
    /// Draws the times over the rate.
    fn drawing(&self) -> Drawing {
        let title = format!("Latency under load, {} members over {}", self.nodes, self.fabric);
        let mut drawing = Drawing::new(title, "thousand messages/s".into(), "us".into());
        drawing.is_logarithmic = true;
        let us =
            |ns: Spread| Spread { median: ns.median / 1e3, min: ns.min / 1e3, max: ns.max / 1e3 };
        let sizes: BTreeSet<u32> = self.rows.iter().map(|row| row.bytes).collect();
        for (bytes, stroke) in sizes.into_iter().zip([Stroke::Solid, Stroke::Dashed].iter().cycle())
        {
            let rows: Vec<&LoadRow> = self.rows.iter().filter(|row| row.bytes == bytes).collect();
            for (hue, (name, _)) in rows[0].times().into_iter().enumerate() {
                let point =
                    |row: &&LoadRow| (row.messages_per_s.median / 1e3, us(row.times()[hue].1));
                let points = rows.iter().map(point).collect();
                let label = format!("{bytes} B, {name}");
                drawing.series.push(DrawnSeries { label, stroke: *stroke, hue, points });
            }
        }
        drawing
    }

    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let columns = "bytes share_percent messages_per_s p50_ns p99_ns p999_ns max_ns";
        text(self, "machine fabric nodes", &[ReportTable { list: "rows", columns, left: &[] }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_times_are_correct() {
        let mut times: Vec<u32> = (1..=2_000).rev().collect();
        let figures = PacedFigures::of(&mut times);
        assert_eq!(
            (figures.p50_ns, figures.p99_ns, figures.p999_ns, figures.max_ns),
            (1_000, 1_980, 1_998, 2_000)
        );
        assert_eq!(PacedFigures::of(&mut []).max_ns, 0);
        assert_eq!(PacedFigures::of(&mut [7]).p50_ns, 7);
    }
}
