//! What an experiment found, and what the paper says of it: only what its text states, nothing read
//! off a plot.

use std::collections::BTreeSet;

use serde::Serialize;
use tramontane_fixtures::block_multicast::Setup;

use super::experiment::Experiment;
use super::schedule::{name, steps_of};
use crate::error::BenchError;
use crate::plot::{Drawing, MILLISECONDS};
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

/// What was simulated with several numbers of members: a line for each algorithm and size.
///
/// # Errors
/// [`BenchError::Arguments`] if there is nothing of that.
pub(super) fn drawing(rows: &[Row]) -> Result<Drawing, BenchError> {
    let title = "One message to all members, simulated".to_owned();
    let mut drawing = Drawing::new(title, "members", MILLISECONDS);
    for row in rows {
        if matches!(row.experiment, Experiment::Algorithms | Experiment::Scale) {
            let label = format!(
                "{}: {}, {} MiB",
                options::name(&row.experiment),
                row.algorithm,
                row.bytes >> 20
            );
            drawing.add(label, row.nodes as f64, Spread::of(&[row.latency_ms]));
        }
    }
    if drawing.series.is_empty() {
        let what = "nothing to draw: --plot is for the experiments algorithms and scale, and for real fabrics";
        return Err(BenchError::Arguments(what.into()));
    }
    Ok(drawing)
}
