//! What `bench predict` prints: each run measured and predicted, and how far off the predictions
//! are.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use tramontane_local::table::{Table, scaled};

use super::errors::{Errors, GOOD, Quartiles, error_of};
use super::held_out::{Fabric, HeldOut};
use super::measuring::Measured;

/// What was measured, as it is kept in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MeasuredRuns {
    /// The machine.
    pub(super) machine: String,
    /// The operating system.
    pub(super) system: String,
    /// What carried the writes.
    pub(super) fabric: Fabric,
    /// What a line of another processor took in the state that readings had to be of, in ns. None:
    /// all count.
    #[serde(default)]
    pub(super) state_ns: Option<u64>,
    /// All runs.
    pub(super) runs: Vec<Measured>,
}

/// A run, measured and predicted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) run: HeldOut,
    pub(super) unit: &'static str,
    pub(super) measured: Quartiles,
    pub(super) predicted: f64,
    /// How far the prediction is above what was measured, as a share of that.
    pub(super) error: f64,
}

impl Row {
    pub(super) fn of(measured: &Measured, predicted: f64) -> Self {
        let quartiles = measured.quartiles();
        Self {
            run: measured.run.clone(),
            unit: measured.run.figure.unit(),
            measured: quartiles,
            predicted,
            error: error_of(predicted, quartiles.median),
        }
    }
}

/// What `bench predict` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Predictions {
    machine: String,
    system: String,
    fabric: Fabric,
    profile: String,
    /// The fewest and the most that a run has.
    rounds: (usize, usize),
    state_ns: Option<u64>,
    /// Readings that were not of that state.
    set_aside: usize,
    /// Runs that have no reading of it, and no row.
    without_reading: usize,
    errors: Errors,
    rows: Vec<Row>,
}

impl Predictions {
    pub(super) fn new(measured: MeasuredRuns, profile: String, rows: Vec<Row>) -> Self {
        let MeasuredRuns { machine, system, fabric, state_ns, runs } = measured;
        let counts = || runs.iter().map(|run| run.rounds.len()).filter(|rounds| *rounds > 0);
        Self {
            machine,
            system,
            fabric,
            profile,
            rounds: (counts().min().unwrap_or(0), counts().max().unwrap_or(0)),
            state_ns,
            set_aside: runs.iter().map(|run| run.set_aside).sum(),
            without_reading: runs.iter().filter(|run| run.rounds.is_empty()).count(),
            errors: Errors::of(&rows.iter().map(|row| row.error).collect::<Vec<_>>()),
            rows,
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let headings =
            "figure  members  senders  bytes  measured  (quartiles)  predicted  unit  error";
        let mut table = Table::new(headings, &[0, 5, 7]);
        for row in &self.rows {
            table.row(row.cells());
        }
        let Self { machine, system, .. } = self;
        format!("{machine}, {system}\n{table}{}\n{}\n", self.summary(), self.about_state())
    }

    /// For a document.
    pub(super) fn markdown(&self, command: &str) -> String {
        let Self { machine, system, profile, .. } = self;
        let rounds = match self.rounds {
            (fewest, most) if fewest == most => most.to_string(),
            (fewest, most) => format!("{fewest} to {most}"),
        };
        let mut text = format!(
            "```sh\n{command}\n```\n\n{machine}, {system}; medians and quartiles of {rounds} rounds;\n\
             profile `{profile}`.\n\n{}\n\n{}\n\n\
             | figure | members | senders | bytes | measured | quartiles | predicted | unit | error |\n\
             |---|---|---|---|---|---|---|---|---|\n",
            self.summary(),
            self.about_state()
        );
        for row in &self.rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "| {} |", row.cells().join(" | "));
        }
        text
    }

    /// Which readings count.
    fn about_state(&self) -> String {
        let Self { set_aside, without_reading, .. } = self;
        let Some(state_ns) = self.state_ns else {
            return "The profile names no state of the machine: all readings count.".into();
        };
        format!(
            "Readings count before and after which a foreign line took about {state_ns} ns:\n\
             {set_aside} others were set aside, and {without_reading} runs have none."
        )
    }

    fn summary(&self) -> String {
        let Errors { rows, median, largest, good } = self.errors;
        format!(
            "{rows} runs: median error {:.1} %, largest {:.0} %; {:.0} % of the runs are off by at \
             most {:.0} %",
            100.0 * median,
            100.0 * largest,
            100.0 * good,
            100.0 * GOOD
        )
    }
}

impl Row {
    fn cells(&self) -> [String; 9] {
        let Quartiles { lower, median, upper } = self.measured;
        [
            self.run.name(),
            self.run.members.to_string(),
            self.run.senders.to_string(),
            self.run.bytes.to_string(),
            scaled(median),
            format!("({}..{})", scaled(lower), scaled(upper)),
            scaled(self.predicted),
            self.unit.to_owned(),
            format!("{:+.1} %", 100.0 * self.error),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::held_out::runs;

    #[test]
    fn a_table_says_what_was_measured_what_was_predicted_and_by_how_much_that_is_off() {
        let run = runs(Fabric::Shm).remove(0);
        let rounds = vec![1e6, 3e6, 2e6, 4e6, 5e6];
        let measured = Measured { run, rounds, set_aside: 2 };
        let other = runs(Fabric::Shm).remove(1);
        let missing = Measured { run: other, rounds: Vec::new(), set_aside: 3 };
        let row = Row::of(&measured, 3.6e6);
        assert!((row.error - 0.2).abs() < 1e-9);
        let kept = MeasuredRuns {
            machine: "one".into(),
            system: "two".into(),
            fabric: Fabric::Shm,
            state_ns: Some(31),
            runs: vec![measured, missing],
        };
        let json = serde_json::to_string(&kept).expect("JSON");
        let read: MeasuredRuns = serde_json::from_str(&json).expect("read back");
        assert_eq!(read.runs[0].run, kept.runs[0].run);
        assert_eq!(read.runs[0].rounds, kept.runs[0].rounds);
        let predictions = Predictions::new(read, "here".into(), vec![row]);
        let (text, markdown) = (predictions.text(), predictions.markdown("a command"));
        for what in [
            "3.00 M",
            "(2.00 M..4.00 M)",
            "3.60 M",
            "+20.0 %",
            "1 runs: median error 20.0 %",
            "took about 31 ns:\n5 others were set aside, and 1 runs have none",
        ] {
            assert!(text.contains(what), "{what}: {text}");
            assert!(markdown.contains(what), "{what}: {markdown}");
        }
        assert!(
            markdown
                .contains("```sh\na command\n```\n\none, two; medians and quartiles of 5 rounds")
        );
    }
}
