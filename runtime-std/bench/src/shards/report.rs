//! The results of the runs on this machine.

use serde::Serialize;
use tramontane_local::table::Table;

use super::load::ClientFigures;
use super::takeover::{Takeovers, Times};
use super::tram::Setting;
use crate::spread::Spread;

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
        let mut text = String::new();
        if !self.rows.is_empty() {
            text += &format!("{}\n", self.rows_table());
        }
        if !self.takeovers.is_empty() {
            text += &format!("{}\n", self.takeovers_table());
        }
        text
    }

    fn rows_table(&self) -> Table {
        let headings = "fabric  system  groups  replicas  bytes  under way  messages/s  least  most  \
                         median us  p99 us  max us";
        let mut table = Table::new(headings, &[0, 1]);
        for row in &self.rows {
            let Spread { median, min, max } = row.messages_per_s;
            table.row([
                row.fabric.to_owned(),
                row.system.to_owned(),
                row.destinations.to_string(),
                row.replicas.to_string(),
                row.bytes.to_string(),
                row.under_way.to_string(),
                format!("{median:.0}"),
                format!("{min:.0}"),
                format!("{max:.0}"),
                format!("{:.1}", row.median_us.median),
                format!("{:.1}", row.p99_us.median),
                format!("{:.0}", row.max_us.median),
            ]);
        }
        table
    }

    fn takeovers_table(&self) -> Table {
        let headings = "fabric  kills  until, in ms  median  90 %  max";
        let mut table = Table::new(headings, &[0, 2]);
        for takeovers in &self.takeovers {
            let times = [
                ("another leads", takeovers.leads_ms),
                ("it delivers", takeovers.delivers_ms),
                ("a client is answered", takeovers.unanswered_ms),
            ];
            for (until, Times { median, p90, max }) in times {
                table.row([
                    takeovers.fabric.to_owned(),
                    takeovers.kills.to_string(),
                    until.to_owned(),
                    format!("{median:.2}"),
                    format!("{p90:.2}"),
                    format!("{max:.2}"),
                ]);
            }
            let further = takeovers.further_leaders;
            let cells = [takeovers.fabric, "", "further leaders", &further.to_string()];
            table.row(cells.map(str::to_owned));
        }
        table
    }
}
