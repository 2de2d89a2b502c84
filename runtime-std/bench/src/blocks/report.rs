//! The results of block groups on a real fabric, and of the probes with which they are compared.

use serde::Serialize;

use super::limit::Method;
use crate::spread::Spread;
use crate::text::{ReportTable, text};
use tramontane_local::options::AlgorithmName;

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

/// The result of one configuration.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BlocksRow {
    /// `shm`, `tcp` or `verbs`.
    pub(super) fabric: &'static str,
    pub(super) algorithm: AlgorithmName,
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
    /// Time from the send until the last receiver had the whole message, in milliseconds; the
    /// median of each round.
    pub(super) latency_ms: Spread,
    /// Size of a message divided by that time: the rate of each receiver.
    pub(super) bytes_per_s: f64,
    /// Bytes of all groups' messages, divided by their total time.
    pub(super) total_bytes_per_s: Spread,
    /// The slowest group's rate divided by the fastest's.
    pub(super) fairness: Spread,
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
        let columns = "fabric algorithm nodes groups bytes block_bytes receives sends latency_ms \
                       bytes_per_s total_bytes_per_s fairness probes";
        let rows = ReportTable { list: "rows", columns, left: &[0, 1, 12] };
        text(self, "machine", &[rows]) + LEGEND
    }
}
