//! The record: a row for each claim, and the number of claims that held.

use serde::Serialize;

use super::number::short;
use super::rows::{Bound, Figure, Stated};
use super::verdict::ClaimVerdict;
use crate::spread::Spread;
use tramontane_local::table::Table;

/// A claim and its result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ClaimRow {
    pub(super) id: String,
    pub(super) section: String,
    pub(super) words: String,
    /// The paper's number or range, with its unit.
    pub(super) stated: String,
    pub(super) is_direction: bool,
    /// The simulator's number, over seeds.
    pub(super) simulated: Option<Spread>,
    /// The figures, if the claim is a direction.
    pub(super) seen: String,
    pub(super) ratio: Option<f64>,
    pub(super) verdict: ClaimVerdict,
    /// Whether the number was known while the parameters were chosen.
    pub(super) is_in_view: bool,
    /// The interpretation of the paper's words, or the reason that no run can answer.
    pub(super) note: String,
    /// Our core's result with the first seed, if the claim was evaluated for it.
    pub(super) core: String,
    /// Whether our core shows the direction.
    pub(super) is_core_same: Option<bool>,
}

/// The numbers of a paper's claims that held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    numbers_held: usize,
    numbers: usize,
    /// Number of the claims whose numbers were known while the parameters were chosen, and that
    /// held.
    in_view_held: usize,
    in_view: usize,
    directions_held: usize,
    directions: usize,
    inputs: usize,
    fitted: usize,
    not_modelled: usize,
    /// Numbers of the claims evaluated for our core, and of those with the same direction there.
    core: usize,
    core_same: usize,
}

/// A line of a table: its cells by position.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TableLine {
    pub(super) source: LineSource,
    pub(super) name: String,
    pub(super) cells: Vec<(String, Spread)>,
}

/// The source of a line's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LineSource {
    /// Runs of a figure whose lines all have the same source.
    Runs,
    Core,
    Model,
    Paper,
}

/// The results of a paper.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PaperPart {
    /// The paper's name, or that of the file of rows.
    pub(super) paper: String,
    #[serde(skip)]
    pub(super) title: String,
    #[serde(skip)]
    pub(super) about: String,
    pub(super) summary: Summary,
    pub(super) goals: Vec<ClaimRow>,
    pub(super) claims: Vec<ClaimRow>,
    #[serde(skip)]
    pub(super) tables: Vec<(Figure, Vec<TableLine>)>,
}

/// The JSON output.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Record {
    pub(super) seeds: u64,
    pub(super) runs: usize,
    pub(super) parts: Vec<PaperPart>,
}

impl Summary {
    /// Summarises a paper's rows.
    pub(super) fn of(rows: &[ClaimRow]) -> Self {
        let mut summary = Self::default();
        for row in rows {
            summary.core += usize::from(row.is_core_same.is_some());
            summary.core_same += usize::from(row.is_core_same == Some(true));
            let held = usize::from(row.verdict == ClaimVerdict::Held);
            match row.verdict {
                ClaimVerdict::Input => summary.inputs += 1,
                ClaimVerdict::Fitted => summary.fitted += 1,
                ClaimVerdict::NotModelled => summary.not_modelled += 1,
                ClaimVerdict::Measured => {}
                ClaimVerdict::Held | ClaimVerdict::Failed if row.is_direction => {
                    summary.directions += 1;
                    summary.directions_held += held;
                }
                ClaimVerdict::Held | ClaimVerdict::Failed => {
                    summary.numbers += 1;
                    summary.numbers_held += held;
                    summary.in_view += usize::from(row.is_in_view);
                    summary.in_view_held += if row.is_in_view { held } else { 0 };
                }
            }
        }
        summary
    }

    /// Describes the summary in a sentence.
    pub(super) fn words(&self) -> String {
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let in_view = match self.in_view {
            0 => String::new(),
            in_view => format!(
                "\nOf the {in_view} numbers known when the parameters were chosen, {} hold; of the \
                 other {}, {}.",
                self.in_view_held,
                self.numbers - in_view,
                self.numbers_held - self.in_view_held
            ),
        };
        let core = match self.core {
            0 => String::new(),
            core => format!("\nOur core shows the same direction in {} of {core}.", self.core_same),
        };
        format!(
            "{} of {} predicted numbers hold ({:.0} %); {} of {} directions hold ({:.0} %);\n{} \
             inputs, {} fitted, {} not modelled.{in_view}{core}",
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

/// Formats a claim's number and unit.
pub(super) fn stated(stated: Option<Stated>, unit: &str) -> String {
    let number = match stated {
        None => return String::new(),
        Some(Stated::Number(value)) => short(value),
        Some(Stated::Bound(Bound::Between(low, high))) => {
            format!("{} to {}", short(low), short(high))
        }
        Some(Stated::Bound(Bound::AtLeast(value))) => format!("at least {}", short(value)),
        Some(Stated::Bound(Bound::AtMost(value))) => format!("at most {}", short(value)),
    };
    format!("{number} {unit}").trim_end().to_owned()
}

impl TableLine {
    /// Returns the line's name with its source.
    pub(super) fn label(&self) -> String {
        let source = match self.source {
            LineSource::Runs => return self.name.clone(),
            LineSource::Core => "our core",
            LineSource::Model => "model",
            LineSource::Paper => "paper",
        };
        format!("{source}: {}", self.name)
    }
}

impl ClaimRow {
    /// Formats the number with its spread, or the figures.
    pub(super) fn simulated(&self) -> String {
        match &self.simulated {
            None => self.seen.clone(),
            Some(Spread { median, min, max }) if min == max => short(*median),
            Some(Spread { median, min, max }) => {
                format!("{} ({}..{})", short(*median), short(*min), short(*max))
            }
        }
    }

    /// Formats the measured number divided by the stated one.
    pub(super) fn ratio(&self) -> String {
        self.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
    }
}

impl Record {
    /// Returns the record as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for PaperPart { paper, summary, goals, claims, tables, .. } in &self.parts {
            let mut table = Table::new("claim  stated  simulator  ratio  verdict", &[0, 1, 2, 4]);
            for row in goals.iter().chain(claims) {
                table.row([
                    row.id.clone(),
                    row.stated.clone(),
                    row.simulated(),
                    row.ratio(),
                    row.verdict.words().to_owned(),
                ]);
            }
            text += &format!("{table}\n");
            for (figure, lines) in tables {
                text += &format!("{}, in {}, by {}:\n", figure.what, figure.unit, figure.over);
                for line in lines {
                    let cells = line.cells.iter().map(|(place, Spread { median, .. })| {
                        format!("{place}: {median:.0$}", figure.digits)
                    });
                    let cells = cells.collect::<Vec<_>>().join(", ");
                    text += &format!("{}: {cells}\n", line.label());
                }
                text.push('\n');
            }
            text += &format!("{paper}: {}\n", summary.words());
        }
        text
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::record) fn row(verdict: ClaimVerdict, is_direction: bool) -> ClaimRow {
        ClaimRow {
            id: "spindle-some".into(),
            section: "IV".into(),
            words: "up to [2] | 3".into(),
            stated: stated(Some(Stated::Number(9.7)), "GB/s"),
            is_direction,
            simulated: Some(Spread { median: 9.0, min: 8.0, max: 10.0 }),
            seen: String::new(),
            ratio: Some(0.93),
            verdict,
            is_in_view: false,
            note: String::new(),
            core: String::new(),
            is_core_same: None,
        }
    }

    #[test]
    fn summary_counts_figures_and_trends_separately() {
        let rows = [
            row(ClaimVerdict::Held, false),
            row(ClaimVerdict::Held, false),
            row(ClaimVerdict::Failed, false),
            row(ClaimVerdict::Held, true),
            row(ClaimVerdict::Failed, true),
            row(ClaimVerdict::Input, false),
            row(ClaimVerdict::Fitted, false),
            row(ClaimVerdict::NotModelled, true),
        ];
        let summary = Summary::of(&rows);
        assert_eq!((summary.numbers_held, summary.numbers), (2, 3));
        assert_eq!((summary.directions_held, summary.directions), (1, 2));
        assert_eq!((summary.inputs, summary.fitted, summary.not_modelled), (1, 1, 1));
        let words = summary.words();
        assert!(words.contains("2 of 3 predicted") && words.contains("1 of 2 directions"));
    }

    #[test]
    fn figures_known_beforehand_are_counted_separately() {
        let in_view = |verdict| ClaimRow { is_in_view: true, ..row(verdict, false) };
        let rows = [
            in_view(ClaimVerdict::Held),
            in_view(ClaimVerdict::Failed),
            row(ClaimVerdict::Held, false),
            row(ClaimVerdict::Held, false),
        ];
        let summary = Summary::of(&rows);
        assert_eq!((summary.in_view_held, summary.in_view), (1, 2));
        assert!(summary.words().contains("Of the 2 numbers"), "{}", summary.words());
        assert!(summary.words().ends_with("1 hold; of the other 2, 2."), "{}", summary.words());
        let none = Summary::of(&[row(ClaimVerdict::Held, false)]).words();
        assert!(none.ends_with("not modelled."), "{none}");
    }

    #[test]
    fn stated_numbers_show_their_units() {
        let of = |bound, unit| stated(Some(Stated::Bound(bound)), unit);
        assert_eq!(of(Bound::Between(20.0, 50.0), "%"), "20 to 50 %");
        assert_eq!(of(Bound::AtLeast(30.0), "%"), "at least 30 %");
        assert_eq!(of(Bound::AtMost(15.0), ""), "at most 15");
        assert_eq!(stated(None, ""), "");
    }
}
