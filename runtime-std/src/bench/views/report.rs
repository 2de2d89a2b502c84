//! What `bench views` prints.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;

use super::spread;
use crate::bench::processes::Spread;
use crate::table::Table;

/// How a member goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Killed: `kill -9`.
    Kill,
    /// Stopped, removed by the others, and woken again.
    Stop,
    /// Asked to leave.
    Leave,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Kill, Self::Stop, Self::Leave];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Leave => "leave",
        }
    }
}

/// What the rounds came to.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// From the order to the first delivery in the view without the member: at each member that stays, in ms.
    to_delivery: BTreeMap<Way, Vec<Vec<f64>>>,
    /// From the order to the end of the leaver, in ms.
    to_left: Vec<f64>,
    /// From the new start to the view of all, in ms.
    to_back: Vec<f64>,
}

impl Rounds {
    pub(super) fn add(&mut self, way: Way, members_ms: Vec<f64>) {
        self.to_delivery.entry(way).or_default().push(members_ms);
    }

    pub(super) fn add_left(&mut self, ms: f64) {
        self.to_left.push(ms);
    }

    pub(super) fn add_back(&mut self, ms: f64) {
        self.to_back.push(ms);
    }

    pub(super) fn summaries(&self) -> Vec<WaySummary> {
        let back = spread(&self.to_back);
        let summary = |(way, rounds): (&Way, &Vec<Vec<f64>>)| {
            let last: Vec<f64> =
                rounds.iter().map(|members| members.iter().copied().fold(0.0, f64::max)).collect();
            let all: Vec<f64> = rounds.iter().flatten().copied().collect();
            WaySummary {
                way: *way,
                rounds: rounds.len(),
                delivery_ms: spread(&all),
                last_delivery_ms: spread(&last),
                left_ms: if *way == Way::Leave { spread(&self.to_left) } else { None },
                back_ms: back,
            }
        };
        self.to_delivery.iter().map(summary).collect()
    }
}

/// The rounds of one way.
#[derive(Clone, Debug, Serialize)]
pub struct WaySummary {
    /// The way.
    pub way: Way,
    /// How many.
    pub rounds: usize,
    /// From the order to the first delivery in the view without the member, over all members that stay, in ms.
    pub delivery_ms: Option<Spread>,
    /// The same at the last of them, over the rounds.
    pub last_delivery_ms: Option<Spread>,
    /// From the order to the end of the leaver, in ms.
    pub left_ms: Option<Spread>,
    /// From a new start to the view of all, in ms; over all ways.
    pub back_ms: Option<Spread>,
}

/// What `bench views` prints.
#[derive(Clone, Debug, Serialize)]
pub struct ViewsReport {
    /// The machine.
    pub machine: String,
    /// What carried the writes.
    pub fabric: &'static str,
    /// Members.
    pub nodes: u16,
    /// A member without a heartbeat for so long was removed.
    pub failure_timeout_ms: u64,
    /// From one heartbeat to the next.
    pub heartbeat_ms: u64,
    /// What decided who went when.
    pub seed: u64,
    /// By way.
    pub ways: Vec<WaySummary>,
    /// Views whose logs were compared.
    pub views: u64,
    /// Deliveries in them, all members together.
    pub messages: u64,
    /// Messages of members that went, which had been told that these are delivered: the others have them.
    pub promised: u64,
    /// Members that were taken for dead and were not: the machine is too busy for the failure timeout.
    pub removed_by_mistake: u64,
}

impl ViewsReport {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new(
            &[
                "way",
                "rounds",
                "first delivery ms",
                "min",
                "max",
                "at the last",
                "left ms",
                "back ms",
            ],
            &[0],
        );
        let number = |spread: Option<Spread>, of: fn(&Spread) -> f64| {
            spread.map_or_else(|| "-".to_owned(), |spread| format!("{:.1}", of(&spread)))
        };
        for way in &self.ways {
            table.row([
                way.way.name().to_owned(),
                way.rounds.to_string(),
                number(way.delivery_ms, |spread| spread.median),
                number(way.delivery_ms, |spread| spread.min),
                number(way.delivery_ms, |spread| spread.max),
                number(way.last_delivery_ms, |spread| spread.median),
                number(way.left_ms, |spread| spread.median),
                number(way.back_ms, |spread| spread.median),
            ]);
        }
        format!(
            "{}\n{} members over {}, failure timeout {} ms, heartbeat {} ms, seed {}\n{table}\
             {} views compared, {} deliveries: nothing lost, doubled or reordered; of those who went, {} messages had been said to \
             be delivered, and are; taken for dead by mistake: {}\n",
            self.machine,
            self.nodes,
            self.fabric,
            self.failure_timeout_ms,
            self.heartbeat_ms,
            self.seed,
            self.views,
            self.messages,
            self.promised,
            self.removed_by_mistake,
        )
    }
}
