//! The results of block groups on a real fabric, and of the probes with which they are compared.

use std::num::NonZeroU64;

use serde::Serialize;

use super::experiment::Experiment;
use super::limit::Method;
use crate::spread::Spread;
use crate::text::{Rows, text};

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

/// Printed after all rows.
const LEGEND: &str = "latency: from the send until the last receiver has the whole message; bytes \
                      per s: at a receiver; total: of all groups; fairness: the slowest group's rate \
                      divided by the fastest's; by row: the probe's time divided by the row's\n";

impl Printed {
    /// Returns the text output.
    pub(super) fn text(&self) -> String {
        let columns = "experiment fabric algorithm nodes groups bytes block_bytes receives sends \
                       latency_ms bytes_per_s total_bytes_per_s fairness link_bytes_per_s \
                       disturbance probes";
        let rows = Rows { list: "rows", columns, left: &[0, 1, 2, 14, 15] };
        text(self, "machine", &[rows]) + LEGEND
    }
}
