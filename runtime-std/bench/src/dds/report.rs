//! What came of the levels: a table a system, and the goals.

use std::fmt::Write as _;

use serde::Serialize;
use tramontane_local::table::Table;

use super::level::{Level, System};
use crate::spread::{Spread, median};

/// A case.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Row {
    pub(super) system: System,
    pub(super) level: Level,
    pub(super) subscribers: u16,
    /// What a subscriber is handed.
    pub(super) gigabytes_per_s: Spread,
}

/// All cases.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) machine: String,
    pub(super) bytes: u32,
    pub(super) samples: u64,
    pub(super) seeds: u64,
    pub(super) disk_bytes_per_us: u64,
    pub(super) disk_sync_ns: u64,
    pub(super) disk_is_assumed: bool,
    pub(super) rows: Vec<Row>,
}

/// A goal, and what was seen.
struct Goal {
    words: String,
    seen: String,
    is_reached: bool,
}

impl Report {
    fn rate(&self, system: System, level: Level, subscribers: u16) -> Option<f64> {
        let is =
            |row: &&Row| (row.system, row.level, row.subscribers) == (system, level, subscribers);
        self.rows.iter().find(is).map(|row| row.gigabytes_per_s.median)
    }

    fn subscribers(&self) -> Vec<u16> {
        let mut all: Vec<u16> = self.rows.iter().map(|row| row.subscribers).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// By number of subscribers: one level's rate by another's, or one system's by another's.
    fn ratios(&self, one: (System, Level), other: (System, Level)) -> Vec<f64> {
        let of = |(system, level), subscribers| self.rate(system, level, subscribers);
        self.subscribers()
            .into_iter()
            .filter_map(|subscribers| Some(of(one, subscribers)? / of(other, subscribers)?))
            .collect()
    }

    fn goals(&self) -> Vec<Goal> {
        let mut goals = Vec::new();
        for system in [System::Spindle, System::Core] {
            let ratios = self.ratios((system, Level::Unordered), (system, Level::Atomic));
            let apart = ratios.iter().map(|ratio| (ratio - 1.0).abs()).fold(0.0, f64::max);
            goals.push(Goal {
                words: format!("{}: unordered and atomic within 5 % of each other", system.name()),
                seen: format!("at most {:.1} % apart", apart * 100.0),
                is_reached: apart <= 0.05,
            });
        }
        for level in Level::ALL {
            let with = [(System::Spindle, System::Baseline), (System::Core, System::CoreBaseline)];
            let ratios = with.map(|(with, without)| self.ratios((with, level), (without, level)));
            for ((system, _), ratios) in with.iter().zip(&ratios) {
                let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
                goals.push(Goal {
                    words: format!("{}, {}: better than without", system.name(), level.name()),
                    seen: format!("{:.2} times (least {least:.2})", median(ratios)),
                    is_reached: least > 1.0,
                });
            }
            let [paper, own] = ratios.map(|ratios| median(&ratios));
            let over_paper = self.ratios((System::Core, level), (System::Baseline, level));
            for (baseline, own) in [("Derecho's", median(&over_paper)), ("its own", own)] {
                goals.push(Goal {
                    words: format!(
                        "our core over {baseline} baseline, {}: at least what Derecho gains",
                        level.name()
                    ),
                    seen: format!("{own:.2} times, and Derecho {paper:.2}"),
                    is_reached: own >= paper,
                });
            }
        }
        goals
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut table = Table::new("system  level  subscribers  GB/s  least  most", &[0, 1]);
        for row in &self.rows {
            let Spread { median, min, max } = row.gigabytes_per_s;
            let figures = [median, min, max].map(|figure| format!("{figure:.2}"));
            let names = [row.system.name(), row.level.name()].map(str::to_owned);
            table.row(names.into_iter().chain([row.subscribers.to_string()]).chain(figures));
        }
        let mut text = table.to_string();
        for goal in self.goals() {
            let verdict = if goal.is_reached { "reached" } else { "MISSED" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{verdict}: {}: {}", goal.words, goal.seen);
        }
        text
    }

    /// As a page.
    pub(super) fn page(&self) -> String {
        let mut page = String::from("# DDS: the paper's levels, simulated\n\n");
        let assumed =
            if self.disk_is_assumed { ", assumed: the paper does not say which" } else { "" };
        let _ = write!(
            page,
            "Spindle's figure 18: one topic, one publisher, samples of {} bytes, on the machine\n\
             `{}`. Each member that logs has a disk that writes {} bytes/us and makes them durable\n\
             within {} ns{assumed}.\n\
             A log holds a member up only when 4 MiB wait for the disk. Medians of {} seeds, {}\n\
             samples each. GB/s that a subscriber is handed, by number of subscribers.\n\
             The figure's own numbers are in no text, and nothing is read off a plot; so the paper's\n\
             relation is taken to be the gain of Derecho's model. Our core is held against it twice:\n\
             over the baseline of that model, and over our core without the techniques, which is\n\
             faster than that baseline. The simulated members of our core do not tell each other what\n\
             is durable; the real ones do, once a sync.\n\n\
             Made by `tramontane bench dds --output`.\n",
            self.bytes,
            self.machine,
            self.disk_bytes_per_us,
            self.disk_sync_ns,
            self.seeds,
            self.samples,
        );
        for system in System::ALL {
            let _ = write!(page, "\n## {}\n\n| level |", system.name());
            let subscribers = self.subscribers();
            for count in &subscribers {
                let _ = write!(page, " {count} |");
            }
            let _ = write!(page, "\n|---|{}", "---|".repeat(subscribers.len()));
            for level in Level::ALL {
                let _ = write!(page, "\n| {} |", level.name());
                for count in &subscribers {
                    let rate = self.rate(system, level, *count).unwrap_or_default();
                    let _ = write!(page, " {rate:.2} |");
                }
            }
            page.push('\n');
        }
        page.push_str("\n## Goals\n\n| goal | seen | |\n|---|---|---|\n");
        for goal in self.goals() {
            let verdict = if goal.is_reached { "reached" } else { "**missed**" };
            let _ = writeln!(page, "| {} | {} | {verdict} |", goal.words, goal.seen);
        }
        page
    }
}
