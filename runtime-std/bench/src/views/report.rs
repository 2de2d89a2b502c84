//! The output of `bench views`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::spread::Spread;
use crate::text::{ReportTable, text};
use crate::views::departure::Departure;

/// The results of the rounds.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Time from the order to the first delivery in the view without the member, at each remaining
    /// member, in ms.
    to_delivery: BTreeMap<Departure, Vec<Vec<f64>>>,
    /// Time from the order until the leaving member has exited, in ms.
    to_left: Vec<f64>,
    /// Time from the restart to the view of all members, in ms.
    to_back: Vec<f64>,
}

impl Rounds {
    pub(super) fn add(&mut self, way: Departure, members_ms: Vec<f64>) {
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
        let summary = |(way, rounds): (&Departure, &Vec<Vec<f64>>)| {
            let last: Vec<f64> =
                rounds.iter().map(|members| members.iter().copied().fold(0.0, f64::max)).collect();
            let all: Vec<f64> = rounds.iter().flatten().copied().collect();
            WaySummary {
                way: *way,
                rounds: rounds.len(),
                delivery_ms: spread(&all),
                last_delivery_ms: spread(&last),
                left_ms: if *way == Departure::Leave { spread(&self.to_left) } else { None },
                back_ms: back,
            }
        };
        self.to_delivery.iter().map(summary).collect()
    }
}

/// The rounds with one way of departing.
#[derive(Clone, Debug, Serialize)]
pub struct WaySummary {
    /// The way of departing.
    pub way: Departure,
    /// Number of rounds.
    pub rounds: usize,
    /// Time from the order to the first delivery in the view without the member, over all remaining
    /// members, in ms.
    pub delivery_ms: Option<Spread>,
    /// The same time for the last of these members, over the rounds.
    pub last_delivery_ms: Option<Spread>,
    /// Time from the order until the leaving member has exited, in ms.
    pub left_ms: Option<Spread>,
    /// Time from a restart to the view of all members, in ms, over all ways of departing.
    pub back_ms: Option<Spread>,
}

/// Returns the spread of some durations in ms, or `None` if there are none.
fn spread(durations_ms: &[f64]) -> Option<Spread> {
    (!durations_ms.is_empty()).then(|| Spread::of(durations_ms))
}

/// The output of `bench views`.
#[derive(Clone, Debug, Serialize)]
pub struct ViewsReport {
    /// The machine on which this ran.
    pub machine: String,
    /// The fabric.
    pub fabric: &'static str,
    /// Number of members.
    pub nodes: u16,
    /// The time by which a heartbeat had to be overdue before its member was removed.
    pub failure_timeout_ms: u64,
    /// Interval between heartbeats.
    pub heartbeat_ms: u64,
    /// The seed that determined which member departed when.
    pub seed: u64,
    /// The results for each way of departing.
    pub ways: Vec<WaySummary>,
    /// Number of views whose logs were compared.
    pub views: u64,
    /// Number of deliveries in those views by all members.
    pub messages: u64,
    /// Number of messages that departed members knew to have been delivered. The others have all of
    /// them.
    pub promised: u64,
    /// Number of live members that were removed, because the machine was too busy for the failure
    /// timeout.
    pub removed_by_mistake: u64,
}

impl ViewsReport {
    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let columns = "way rounds delivery_ms last_delivery_ms left_ms back_ms";
        let fields = "machine fabric nodes failure_timeout_ms heartbeat_ms seed views messages \
                      promised removed_by_mistake";
        let table = text(self, fields, &[ReportTable { list: "ways", columns, left: &[0] }]);
        table + "nothing was lost, duplicated or reordered\n"
    }
}
