//! The results of the runs on this machine.

use serde::Serialize;

use super::load::ClientFigures;
use super::takeover::Takeovers;
use super::tram::Setting;
use crate::spread::Spread;
use crate::text::{ReportTable, text};

/// All rounds of one configuration under one load.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ShardsRow {
    fabric: &'static str,
    system: &'static str,
    destinations: u16,
    replicas: u16,
    bytes: u32,
    /// Maximum number of messages in flight per client.
    under_way: u32,
    messages_per_s: Spread,
    /// Time from a multicast to the answers of all destinations.
    median_us: Spread,
    p99_us: Spread,
    max_us: Spread,
}

/// The JSON output.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ShardsReport {
    pub(super) machine: String,
    pub(super) rows: Vec<ShardsRow>,
    pub(super) takeovers: Vec<Takeovers>,
}

impl ShardsRow {
    pub(super) fn of(
        system: &'static str,
        replicas: u16,
        setting: &Setting,
        under_way: u32,
        seen: &[ClientFigures],
    ) -> Self {
        let spread = |figure: &dyn Fn(&ClientFigures) -> f64| {
            Spread::of(&seen.iter().map(figure).collect::<Vec<f64>>())
        };
        Self {
            fabric: setting.carrier.name(),
            system,
            destinations: setting.groups,
            replicas,
            bytes: setting.bytes,
            under_way,
            messages_per_s: spread(&|seen| seen.messages_per_s),
            median_us: spread(&|seen| seen.latency_us[0]),
            p99_us: spread(&|seen| seen.latency_us[1]),
            max_us: spread(&|seen| seen.latency_us[2]),
        }
    }
}

impl ShardsReport {
    /// Returns the report as text.
    pub(super) fn text(&self) -> String {
        let rows = ReportTable {
            list: "rows",
            columns: "fabric system destinations replicas bytes under_way messages_per_s \
                      median_us p99_us max_us",
            left: &[0, 1],
        };
        let takeovers = ReportTable {
            list: "takeovers",
            columns: "fabric kills leads_ms delivers_ms unanswered_ms further_leaders",
            left: &[0],
        };
        text(self, "machine", &[rows, takeovers])
    }
}
