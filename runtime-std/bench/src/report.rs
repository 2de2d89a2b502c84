//! The output of an experiment: a table for people, an object for programs.

use serde::Serialize;

use crate::spread::Spread;
use crate::text::{ReportTable, text};
use tramontane_runtime::rdma::PostCounts;

/// A probe with which a run is compared, alternating with the run: processes that carry bytes
/// without the protocol, or the same group without a key.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Probe {
    /// The bare ring of two processes.
    Ring {
        /// Messages per second at the median process, its own and its peer's.
        messages_per_s: Spread,
        /// The run's rate divided by the probe's, round by round.
        ratio: Spread,
    },
    /// The bare mesh of TCP connections.
    Mesh {
        /// Bytes per second that the median process received from the others.
        received_bytes_per_s: Spread,
        /// Bytes per second of others' messages delivered at the run's median member, excluding
        /// headers and the member's own messages.
        delivered_bytes_per_s: Spread,
        /// The delivered rate divided by the received one, round by round.
        ratio: Spread,
    },
    /// The same group without a key.
    Unencrypted {
        /// Messages per second at the median member, its own and others'.
        messages_per_s: Spread,
        /// The rate with a key divided by the one without, round by round.
        ratio: Spread,
    },
}

/// The result of one configuration.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `shm`, `tcp` or `verbs`.
    pub fabric: &'static str,
    /// Number of members.
    pub nodes: u16,
    /// Number of senders among them.
    pub senders: u16,
    /// Size of a message in bytes.
    pub bytes: u32,
    /// Number of slots of a sender.
    pub window: u32,
    /// The thread that steps the member.
    pub drive: String,
    /// The enabled techniques of the paper.
    pub techniques: String,
    /// Messages delivered per second at the median member, its own and others' together.
    pub messages_per_s: Spread,
    /// The same rate in bytes, of the median run.
    pub bytes_per_s: f64,
    /// Writes posted to one peer per local message; not counted with a polling thread.
    pub writes_per_message: Option<f64>,
    /// Number of nulls of all members, in the last run; not counted with a polling thread.
    pub nulls: Option<u64>,
    /// The probe, if it was run.
    pub probe: Option<Probe>,
    /// The fabric's counts at each member, by rank, in the last run; empty if the fabric does not
    /// count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<PostCounts>,
}

/// The JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// The machine on which this ran.
    pub machine: String,
    /// The results of each configuration.
    pub rows: Vec<Row>,
}

impl BenchReport {
    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let columns = "fabric nodes senders bytes drive techniques messages_per_s bytes_per_s \
                       writes_per_message nulls probe";
        let table =
            text(self, "machine", &[ReportTable { list: "rows", columns, left: &[0, 4, 5, 10] }]);
        table + LEGEND
    }
}

/// Printed after all rows.
const LEGEND: &str = "messages per s: delivered at the median member, its own and others'; writes \
                      per message: to one peer\n";
