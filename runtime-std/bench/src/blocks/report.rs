//! The results of block groups on a real fabric, and of the probes with which they are compared.

use std::num::NonZeroU64;

use serde::Serialize;

use super::experiment::Experiment;
use super::limit::Method;
use crate::spread::Spread;
use tramontane_local::options::name;
use tramontane_local::table::{Table, scaled};

/// A probe with which a row is compared: it carries the same bytes to the same number of receivers,
/// alternating with the row's rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Beside {
    pub(super) probe: Method,
    /// Time from the start until the last receiver has finished, in milliseconds; the median of
    /// each round.
    pub(super) latency_ms: Spread,
    /// The probe's time divided by the row's, round by round: a value above one means that the row
    /// is faster.
    pub(super) by_row: Spread,
    /// Bytes per second of the processor time of all receivers, excluding the processor time of
    /// others.
    pub(super) bytes_per_processor_s: Spread,
}

/// The disturbance, and the prediction of the paper's analysis, if it covers the row's algorithm.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Disturbed {
    #[serde(flatten)]
    pub(super) effect: Effect,
    /// Whether the analysis covers this algorithm.
    pub(super) is_analysed: bool,
}

/// The effect of a disturbance, compared, round by round, with the same case without it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Effect {
    /// A link at half speed.
    SlowLink {
        link: String,
        /// Share of the full bandwidth.
        share: Spread,
        /// The minimum according to the analysis.
        share_least: f64,
    },
    /// A member that was idle for a while once a message had begun there.
    Pause {
        member: u16,
        /// Duration of the pause in block times.
        blocks: u32,
        /// Duration of the pause in milliseconds.
        pause_ms: Spread,
        /// Additional time of the message, divided by the pause.
        cost: Spread,
        /// The maximum according to the analysis.
        cost_most: f64,
    },
}

/// The result of one configuration.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BlocksRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) experiment: Option<Experiment>,
    /// `shm`, `tcp` or `verbs`.
    pub(super) fabric: &'static str,
    pub(super) algorithm: &'static str,
    /// Number of members of each group, including its root.
    pub(super) nodes: u16,
    /// Number of concurrent groups, each with a different root.
    pub(super) groups: u16,
    /// Size of a message in bytes.
    pub(super) bytes: usize,
    pub(super) block_bytes: usize,
    /// Maximum numbers of receives and sends in flight at a member.
    pub(super) receives: u16,
    pub(super) sends: u16,
    /// Maximum number of a root's messages in flight.
    pub(super) ahead: usize,
    /// Rate of each link in each direction, if it is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) link_bytes_per_s: Option<NonZeroU64>,
    /// Time from the send until the last receiver had the whole message, in milliseconds; the
    /// median of each round.
    pub(super) latency_ms: Spread,
    /// Size of a message divided by that time: the rate of each receiver.
    pub(super) bytes_per_s: f64,
    /// Bytes of all groups' messages, divided by their total time.
    pub(super) total_bytes_per_s: Spread,
    /// The slowest group's rate divided by the fastest's.
    pub(super) fairness: Spread,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disturbance: Option<Disturbed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) probes: Vec<Beside>,
}

/// The JSON output.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Printed {
    /// The machine on which this ran.
    pub(super) machine: String,
    pub(super) rows: Vec<BlocksRow>,
}

const HEADINGS: &str = "fabric  algorithm  nodes  groups  bytes  block  window  ms  (min..max)  \
                        each  total  fairness  beside";

/// Printed after all rows.
const LEGEND: &str = "ms: from the send until the last receiver has the whole message; each: bytes per second at a receiver; total: of all groups; \
                      fairness: the slowest group's rate divided by the fastest's; beside: ms of the probe, and that divided by the row's; GB/s of one processor\n";

impl Printed {
    /// Returns the text output: one table per experiment.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.machine);
        for rows in self.rows.chunk_by(|one, other| one.experiment == other.experiment) {
            if let Some(experiment) = rows[0].experiment {
                text += &format!("{}:\n", name(&experiment));
            }
            let mut table = Table::new(HEADINGS, &[0, 1, 8, 12]);
            for row in rows {
                table.row(row.cells());
            }
            text += &table.to_string();
        }
        text + LEGEND
    }
}

impl BlocksRow {
    fn cells(&self) -> [String; 13] {
        [
            self.fabric.to_owned(),
            self.algorithm.to_owned(),
            self.nodes.to_string(),
            self.groups.to_string(),
            self.bytes.to_string(),
            self.block_bytes.to_string(),
            format!("{}/{}", self.receives, self.sends),
            format!("{:.3}", self.latency_ms.median),
            format!("({:.3}..{:.3})", self.latency_ms.min, self.latency_ms.max),
            scaled(self.bytes_per_s),
            scaled(self.total_bytes_per_s.median),
            format!("{:.2}", self.fairness.median),
            self.beside(),
        ]
    }

    fn beside(&self) -> String {
        let link =
            self.link_bytes_per_s.map(|rate| format!("links of {}B/s", scaled(rate.get() as f64)));
        let disturbance = self.disturbance.as_ref().map(Disturbed::text);
        let probes = self.probes.iter().map(Beside::text);
        link.into_iter().chain(disturbance).chain(probes).collect::<Vec<_>>().join("; ")
    }
}

impl Disturbed {
    fn text(&self) -> String {
        match &self.effect {
            Effect::SlowLink { link, share: Spread { median, min, max }, share_least } => {
                let analysis =
                    format!(", at least {:.1} according to the analysis", 100.0 * share_least);
                format!(
                    "link {link} at half speed leaves {:.1} % ({:.1}..{:.1}) of the full bandwidth{}",
                    100.0 * median,
                    100.0 * min,
                    100.0 * max,
                    if self.is_analysed { &analysis } else { "" }
                )
            }
            Effect::Pause {
                member,
                blocks,
                pause_ms,
                cost: Spread { median, min, max },
                cost_most,
            } => {
                let analysis = format!(", at most {cost_most:.2} according to the analysis");
                format!(
                    "member {member} pauses for {blocks} blocks, {:.2} ms, which costs {median:.2} ({min:.2}..{max:.2}) of the pause{}",
                    pause_ms.median,
                    if self.is_analysed { &analysis } else { "" }
                )
            }
        }
    }
}

impl Beside {
    fn text(&self) -> String {
        let Self { probe, latency_ms, by_row, bytes_per_processor_s } = self;
        format!(
            "{} {:.3}, {:.2} ({:.2}..{:.2}), {:.1} GB/s",
            probe.name(),
            latency_ms.median,
            by_row.median,
            by_row.min,
            by_row.max,
            bytes_per_processor_s.median / 1e9
        )
    }
}
