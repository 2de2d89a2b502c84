//! What an experiment found, and what the paper says of it: only what its text states, nothing read
//! off a plot.

use std::collections::BTreeSet;

use serde::Serialize;
use tramontane_fixtures::block_multicast::Setup;

use super::experiment::Experiment;
use super::schedule::{name, steps_of};
use crate::error::BenchError;
use crate::plot::{Drawing, MILLISECONDS, counted};
use crate::spread::Spread;
use tramontane_local::options;
use tramontane_local::table::{Table, scaled};

/// One configuration's result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) experiment: Experiment,
    pub(super) algorithm: &'static str,
    /// Members of a group, the root among them.
    pub(super) nodes: usize,
    /// Groups at work at the same time.
    pub(super) groups: usize,
    /// Bytes of a message; the mean where they differ.
    pub(super) bytes: usize,
    pub(super) block_bytes: usize,
    /// From the send to the last member's completion; the mean where there are several.
    pub(super) latency_ms: f64,
    /// From the first receiver's completion to the last's.
    pub(super) skew_ms: Option<f64>,
    /// Bytes of all messages by the time that they took together.
    pub(super) bytes_per_s: f64,
    /// The latency by the schedule's steps, each of a block's time on a port.
    pub(super) by_port: Option<f64>,
    /// The same, each step of a block's time from post to receipt between two members alone.
    pub(super) by_block: Option<f64>,
    /// What it shows, by the experiment's measure.
    pub(super) beside: String,
    /// What the paper says.
    pub(super) paper: &'static str,
}

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Printed<'r> {
    pub(super) seed: u64,
    pub(super) rows: &'r [Row],
}

impl Row {
    /// The row of one message in the first group of a setup.
    pub(super) fn of_message(
        experiment: Experiment,
        setup: &Setup,
        latency_ns: u64,
        skew_ns: u64,
    ) -> Self {
        let group = &setup.groups[0];
        let bytes = group.messages.first().map_or(0, |message| message.bytes);
        let steps = steps_of(setup);
        let port_ns = setup.profile.port_ps(setup.block_bytes as u64) as f64 / 1000.0;
        let block_ns = (setup.profile.post_ns + setup.profile.latency_ns(setup.block_bytes)) as f64;
        let by =
            |step_ns: f64| Some(latency_ns as f64 / (steps as f64 * step_ns)).filter(|_| steps > 0);
        Self {
            experiment,
            algorithm: name(group.algorithm),
            nodes: group.members.len(),
            groups: 1,
            bytes,
            block_bytes: setup.block_bytes,
            latency_ms: latency_ns as f64 / 1e6,
            skew_ms: Some(skew_ns as f64 / 1e6),
            bytes_per_s: bytes as f64 * 1e9 / latency_ns.max(1) as f64,
            by_port: by(port_ns),
            by_block: by(block_ns),
            beside: String::new(),
            paper: "",
        }
    }

    /// The row of a time that is no latency of one whole message.
    pub(super) fn of_time(experiment: Experiment, setup: &Setup, latency_ms: f64) -> Self {
        let row = Self::of_message(experiment, setup, (latency_ms * 1e6) as u64, 0);
        Self {
            groups: setup.groups.len(),
            latency_ms,
            skew_ms: None,
            bytes_per_s: row.bytes_per_s * setup.groups.len() as f64,
            by_port: None,
            by_block: None,
            ..row
        }
    }

    pub(super) fn beside(self, beside: String, paper: &'static str) -> Self {
        Self { beside, paper, ..self }
    }
}

/// The rows as tables, one an experiment.
pub(super) fn text(rows: &[Row]) -> String {
    let headings = "algorithm  nodes  groups  bytes  block  ms  skew ms  bytes/s  by port  \
                    by block  beside";
    let mut text = String::new();
    for rows in rows.chunk_by(|one, other| one.experiment == other.experiment) {
        let mut table = Table::new(headings, &[0, 10]);
        for row in rows {
            let ratio = |ratio: Option<f64>| {
                ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"))
            };
            table.row([
                row.algorithm.to_owned(),
                row.nodes.to_string(),
                row.groups.to_string(),
                scaled(row.bytes as f64),
                scaled(row.block_bytes as f64),
                format!("{:.3}", row.latency_ms),
                row.skew_ms.map_or_else(|| "-".into(), |skew| format!("{skew:.3}")),
                scaled(row.bytes_per_s),
                ratio(row.by_port),
                ratio(row.by_block),
                row.beside.clone(),
            ]);
        }
        text += &format!("{}:\n{table}", options::name(&rows[0].experiment));
        let said: BTreeSet<&str> =
            rows.iter().map(|row| row.paper).filter(|paper| !paper.is_empty()).collect();
        for paper in said {
            text += &format!("the paper: {paper}\n");
        }
        text.push('\n');
    }
    text + "ms: from the send to the last completion; by port, by block: that by the schedule's steps, each of a block's \
            time on a port, and of its time between two members alone\n"
}

/// What was simulated with several numbers of members: a line for each algorithm and size, or
/// whatever else an experiment varies. Times where latencies are compared, else GB/s.
///
/// # Errors
/// [`BenchError::Arguments`] if there is nothing of that.
pub(super) fn drawing(rows: &[Row]) -> Result<Drawing, BenchError> {
    let times = [Experiment::Algorithms, Experiment::Scale];
    let rates =
        [Experiment::Overlap, Experiment::Small, Experiment::Interrupts, Experiment::Offload];
    let are_times = rows.iter().any(|row| times.contains(&row.experiment));
    let (drawn, unit) = if are_times { (&times[..], MILLISECONDS) } else { (&rates[..], "GB/s") };
    let mut drawing = Drawing::new("Messages to all members, simulated".into(), "members", unit);
    for row in rows.iter().filter(|row| drawn.contains(&row.experiment)) {
        let figure = if are_times { row.latency_ms } else { row.bytes_per_s / 1e9 };
        drawing.add(row.label(), row.nodes as f64, Spread::of(&[figure]));
    }
    if drawing.series.is_empty() {
        let what = "nothing to draw: --plot is for the experiments algorithms, scale, overlap, small, interrupts, \
                    offload and breakdown, and for real fabrics";
        return Err(BenchError::Arguments(what.into()));
    }
    Ok(drawing)
}

impl Row {
    /// What its line is called: what it shows stands before a colon or a comma.
    fn label(&self) -> String {
        let experiment = options::name(&self.experiment);
        let size = counted(self.bytes as f64);
        match self.experiment {
            Experiment::Algorithms | Experiment::Scale => {
                format!("{experiment}: {}, {} MiB", self.algorithm, self.bytes >> 20)
            }
            Experiment::Small => format!("{experiment}: {size}B"),
            _ => {
                let what = self.beside.split(':').next().unwrap_or_default();
                format!("{what}, {size}B")
            }
        }
    }
}
