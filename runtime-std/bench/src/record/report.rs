//! The record: a row for each claim, and how many held.

use std::fmt::Write as _;

use serde::Serialize;

use super::claim::{Paper, Stated, short};
use super::verdict::Verdict;
use crate::spread::Spread;
use tramontane_local::table::Table;

/// A claim and what came of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) paper: Paper,
    pub(super) id: &'static str,
    pub(super) section: &'static str,
    pub(super) words: &'static str,
    /// The paper's number or range, with its unit.
    pub(super) stated: String,
    pub(super) is_direction: bool,
    /// The simulator's number, over seeds.
    pub(super) simulated: Option<Spread>,
    /// Of a direction: the figures.
    pub(super) seen: String,
    pub(super) ratio: Option<f64>,
    pub(super) verdict: Verdict,
    /// Whether the number was looked at while the parameters were chosen.
    pub(super) is_in_view: bool,
    /// Our own core's number, if it was asked for.
    pub(super) own: Option<f64>,
    /// How the words were understood, or why no run can answer.
    pub(super) note: String,
}

/// How many claims of a paper held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    pub(super) numbers_held: usize,
    pub(super) numbers: usize,
    /// Of the numbers: those that were looked at while the parameters were chosen.
    pub(super) in_view_held: usize,
    pub(super) in_view: usize,
    pub(super) directions_held: usize,
    pub(super) directions: usize,
    pub(super) inputs: usize,
    pub(super) fitted: usize,
    pub(super) not_modelled: usize,
}

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) seeds: u64,
    pub(super) runs: usize,
    pub(super) summaries: Vec<(Paper, Summary)>,
    pub(super) rows: Vec<Row>,
}

impl Summary {
    /// Of a paper's rows.
    pub(super) fn of(rows: &[Row], paper: Paper) -> Self {
        let mut summary = Self::default();
        for row in rows.iter().filter(|row| row.paper == paper) {
            let held = usize::from(row.verdict == Verdict::Held);
            match row.verdict {
                Verdict::Input => summary.inputs += 1,
                Verdict::Fitted => summary.fitted += 1,
                Verdict::NotModelled => summary.not_modelled += 1,
                Verdict::Held | Verdict::Failed if row.is_direction => {
                    summary.directions += 1;
                    summary.directions_held += held;
                }
                Verdict::Held | Verdict::Failed => {
                    summary.numbers += 1;
                    summary.numbers_held += held;
                    if row.is_in_view {
                        summary.in_view += 1;
                        summary.in_view_held += held;
                    }
                }
            }
        }
        summary
    }

    /// In a sentence.
    pub(super) fn words(&self) -> String {
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let in_view = match self.in_view {
            0 => String::new(),
            in_view => format!(
                "\nOf the {in_view} numbers that were in view when parameters were chosen {} hold, \
                 of the other {} {}.",
                self.in_view_held,
                self.numbers - in_view,
                self.numbers_held - self.in_view_held
            ),
        };
        format!(
            "{} of {} predicted numbers hold ({:.0} %); {} of {} directions hold ({:.0} %);\n{} \
             inputs, {} fitted, {} not modelled.{in_view}",
            self.numbers_held,
            self.numbers,
            percent(self.numbers_held, self.numbers),
            self.directions_held,
            self.directions,
            percent(self.directions_held, self.directions),
            self.inputs,
            self.fitted,
            self.not_modelled
        )
    }
}

/// A claim's number and unit.
pub(super) fn stated(stated: Stated, unit: &str) -> String {
    let number = match stated {
        Stated::Number(value) => short(value),
        Stated::Between(low, high) => format!("{} to {}", short(low), short(high)),
        Stated::AtLeast(value) => format!("at least {}", short(value)),
        Stated::AtMost(value) => format!("at most {}", short(value)),
        Stated::Direction => return String::new(),
    };
    format!("{number} {unit}").trim_end().to_owned()
}

impl Row {
    fn simulated(&self) -> String {
        match &self.simulated {
            None => self.seen.clone(),
            Some(Spread { median, min, max }) if min == max => short(*median),
            Some(Spread { median, min, max }) => {
                format!("{} ({}..{})", short(*median), short(*min), short(*max))
            }
        }
    }

    fn ratio(&self) -> String {
        self.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
    }

    fn verdict(&self) -> String {
        let in_view = if self.is_in_view { ", in view" } else { "" };
        format!("{}{in_view}", self.verdict.words())
    }

    fn own(&self) -> String {
        self.own.map_or_else(String::new, short)
    }
}

impl Report {
    /// For people.
    pub(super) fn text(&self) -> String {
        let headings = "claim  paper  simulator  ratio  verdict  own core";
        let mut table = Table::new(headings, &[0, 1, 2, 4]);
        for row in &self.rows {
            table.row([
                row.id.to_owned(),
                row.stated.clone(),
                row.simulated(),
                row.ratio(),
                row.verdict.words().to_owned(),
                row.own(),
            ]);
        }
        let mut text = format!("{table}\n");
        for (paper, summary) in &self.summaries {
            text += &format!("{paper:?}: {}\n", summary.words());
        }
        text
    }

    /// For the documentation.
    pub(super) fn markdown(&self, command: &str) -> String {
        let mut text = format!(
            "# The record\n\nEvery number and every stated direction of the papers' texts beside \
             the simulator's.\nGenerated by\n`{command}`.\n{} runs, medians over {} seeds with \
             the least and the greatest in brackets. \n[How to read it](README.md).\n",
            self.runs, self.seeds
        );
        text = text.replace(". \n", ".\n");
        for (paper, summary) in &self.summaries {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n## {paper:?}\n\n{}\n\n", summary.words());
            text += "| claim | section | the paper | stated | simulator | ratio | verdict | own \
                     core | note |\n|---|---|---|---|---|---|---|---|---|\n";
            for row in self.rows.iter().filter(|row| row.paper == *paper) {
                let cells = [
                    row.id,
                    row.section,
                    row.words,
                    &row.stated,
                    &row.simulated(),
                    &row.ratio(),
                    &row.verdict(),
                    &row.own(),
                    &row.note,
                ];
                let cells = cells.map(|cell| cell.replace('|', "\\|").replace('[', "\\["));
                let _ = writeln!(text, "| {} |", cells.join(" | "));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: Verdict, is_direction: bool) -> Row {
        Row {
            paper: Paper::Spindle,
            id: "spindle-some",
            section: "IV",
            words: "up to [2] | 3",
            stated: stated(Stated::Number(9.7), "GB/s"),
            is_direction,
            simulated: Some(Spread { median: 9.0, min: 8.0, max: 10.0 }),
            seen: String::new(),
            ratio: Some(0.93),
            verdict,
            is_in_view: false,
            own: None,
            note: String::new(),
        }
    }

    #[test]
    fn a_summary_counts_numbers_and_directions_apart() {
        let rows = [
            row(Verdict::Held, false),
            row(Verdict::Held, false),
            row(Verdict::Failed, false),
            row(Verdict::Held, true),
            row(Verdict::Failed, true),
            row(Verdict::Input, false),
            row(Verdict::Fitted, false),
            row(Verdict::NotModelled, true),
        ];
        let summary = Summary::of(&rows, Paper::Spindle);
        assert_eq!((summary.numbers_held, summary.numbers), (2, 3));
        assert_eq!((summary.directions_held, summary.directions), (1, 2));
        assert_eq!((summary.inputs, summary.fitted, summary.not_modelled), (1, 1, 1));
        assert_eq!(Summary::of(&rows, Paper::Rdmc), Summary::default());
        let words = summary.words();
        assert!(
            words.contains("2 of 3 predicted") && words.contains("1 of 2 directions"),
            "{words}"
        );
    }

    #[test]
    fn numbers_that_were_in_view_are_counted_apart_and_say_so() {
        let in_view = |verdict| Row { is_in_view: true, ..row(verdict, false) };
        let rows = vec![
            in_view(Verdict::Held),
            in_view(Verdict::Failed),
            row(Verdict::Held, false),
            row(Verdict::Held, false),
        ];
        let summary = Summary::of(&rows, Paper::Spindle);
        assert_eq!((summary.in_view_held, summary.in_view), (1, 2));
        assert!(summary.words().contains("Of the 2 numbers"), "{}", summary.words());
        assert!(summary.words().ends_with("1 hold, of the other 2 2."), "{}", summary.words());
        let report = Report { seeds: 1, runs: 1, summaries: Vec::new(), rows };
        assert_eq!(report.text().matches("in view").count(), 0);
        let none = Summary::of(&[row(Verdict::Held, false)], Paper::Spindle).words();
        assert!(none.ends_with("not modelled."), "{none}");
    }

    #[test]
    fn a_row_is_a_line_of_markdown() {
        let rows = vec![row(Verdict::Failed, false)];
        let summaries = vec![(Paper::Spindle, Summary::of(&rows, Paper::Spindle))];
        let report = Report { seeds: 3, runs: 1, summaries, rows };
        let text = report.markdown("some command");
        assert!(text.contains("| 9.7 GB/s | 9 (8..10) | 0.93 | FAILED |"), "{text}");
        assert!(text.contains(r"up to \[2] \| 3"), "{text}");
        assert!(report.text().contains("FAILED"));
    }

    #[test]
    fn what_is_stated_has_its_unit() {
        assert_eq!(stated(Stated::Between(20.0, 50.0), "%"), "20 to 50 %");
        assert_eq!(stated(Stated::AtLeast(30.0), "%"), "at least 30 %");
        assert_eq!(stated(Stated::AtMost(15.0), ""), "at most 15");
        assert_eq!(stated(Stated::Direction, ""), "");
    }
}
