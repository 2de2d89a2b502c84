//! What came of the experiments: a row for each point, and the leader changes.

use serde::Serialize;
use tramontane_local::table::Table;

use super::case::{Case, Demand};
use super::experiment::Experiment;
use super::judged::Judged;
use super::leader_change::LeaderChange;
use super::system::System;
use crate::report::Simulated;
use crate::spread::Spread;

/// A point of a figure.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) experiment: Experiment,
    pub(super) system: String,
    /// Where it stands on the horizontal axis.
    pub(super) over: u32,
    pub(super) destinations: u32,
    pub(super) replicas: u16,
    pub(super) payload_bytes: u32,
    pub(super) clients: u16,
    pub(super) demand: Demand,
    pub(super) latency_us: Spread,
    pub(super) p99_us: Spread,
    pub(super) messages_per_s: Spread,
    /// What was run. None of the writes, which are no messages.
    #[serde(skip)]
    pub(super) case: Option<Case>,
}

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) seeds: u64,
    pub(super) quick: bool,
    pub(super) simulated: Simulated,
    pub(super) rows: Vec<Row>,
    pub(super) leader_changes: Vec<LeaderChange>,
    pub(super) claims: Vec<Judged>,
    pub(super) goals: Vec<Judged>,
}

/// The rows, to look a figure up.
#[derive(Clone, Copy)]
pub(super) struct Rows<'r>(pub(super) &'r [Row]);

impl Rows<'_> {
    /// The row of a point, if it was run.
    pub(super) fn find(
        &self,
        experiment: Experiment,
        system: System,
        over: u32,
        demand: Demand,
    ) -> Option<&Row> {
        self.0.iter().find(|row| {
            let is_it = |case: Case| case.system == system && case.demand == demand;
            row.experiment == experiment && row.over == over && row.case.is_some_and(is_it)
        })
    }

    /// The latency of one client's messages, in us.
    pub(super) fn latency_us(
        &self,
        experiment: Experiment,
        system: System,
        over: u32,
    ) -> Option<f64> {
        self.find(experiment, system, over, Demand::Low).map(|row| row.latency_us.median)
    }

    /// The messages a second of many clients.
    pub(super) fn messages_per_s(
        &self,
        experiment: Experiment,
        system: System,
        over: u32,
    ) -> Option<f64> {
        let row = self.find(experiment, system, over, Demand::Saturating);
        row.map(|row| row.messages_per_s.median)
    }
}

impl Row {
    /// What its line is called.
    pub(super) fn label(&self) -> String {
        match (self.experiment, self.destinations) {
            (Experiment::Replicas, 1) => format!("{}, 1 destination", self.system),
            (Experiment::Replicas, many) => format!("{}, {many} destinations", self.system),
            _ => self.system.clone(),
        }
    }
}

impl Report {
    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for rows in self.rows.chunk_by(|one, other| one.experiment == other.experiment) {
            let headings = "system  over  groups  clients  latency us  p99 us  messages/s";
            let mut table = Table::new(headings, &[0]);
            for row in rows {
                table.row([
                    row.system.clone(),
                    row.over.to_string(),
                    row.destinations.to_string(),
                    row.clients.to_string(),
                    format!("{:.1}", row.latency_us.median),
                    format!("{:.1}", row.p99_us.median),
                    format!("{:.0}", row.messages_per_s.median),
                ]);
            }
            let experiment = rows[0].experiment;
            let name = tramontane_local::options::name(&experiment);
            text += &format!("{name}, over {}:\n{table}\n", experiment.axis());
        }
        text += &self.changes();
        for (what, judged) in [("The paper", &self.claims), ("The goals", &self.goals)] {
            if judged.is_empty() {
                continue;
            }
            text += &format!("{what}:\n");
            for one in judged {
                let Judged { words, seen, verdict, .. } = one;
                text += &format!("- {words}: {} ({seen})\n", verdict.words());
            }
            text.push('\n');
        }
        text
    }

    fn changes(&self) -> String {
        if self.leader_changes.is_empty() {
            return String::new();
        }
        let headings =
            "change  delayed  mean us  deviation  min  max  beyond the suspicion: mean  max";
        let mut table = Table::new(headings, &[]);
        for (change, number) in self.leader_changes.iter().zip(1..) {
            let cells = change.cells();
            table.row([vec![number.to_string()], cells.to_vec()].concat());
        }
        format!("leader-change, delayed messages:\n{table}\n")
    }
}

impl LeaderChange {
    /// As a row of a table.
    pub(super) fn cells(&self) -> [String; 7] {
        let whole = |us: f64| format!("{us:.0}");
        [
            self.delayed.to_string(),
            whole(self.mean_us),
            whole(self.deviation_us),
            whole(self.min_us),
            whole(self.max_us),
            whole(self.mean_beyond_us()),
            whole(self.max_beyond_us()),
        ]
    }
}
