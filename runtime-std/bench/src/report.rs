//! The output of an experiment: a table for people, an object for programs.

use serde::Serialize;

use crate::spread::Spread;
use tramontane_local::table::{Table, scaled};
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
        format!("{}\n{}", self.machine, table(&self.rows))
    }
}

/// Formats the rows as a table.
fn table(rows: &[Row]) -> String {
    let headings = "fabric  nodes  senders  bytes  drive  techniques  messages/s  (min..max)  \
                    bytes/s  writes  nulls  beside";
    let mut table = Table::new(headings, &[0, 4, 5, 11]);
    for row in rows {
        let rate = &row.messages_per_s;
        table.row([
            row.fabric.to_owned(),
            row.nodes.to_string(),
            row.senders.to_string(),
            row.bytes.to_string(),
            row.drive.clone(),
            row.techniques.clone(),
            scaled(rate.median),
            format!("({}..{})", scaled(rate.min), scaled(rate.max)),
            scaled(row.bytes_per_s),
            row.writes_per_message.map_or_else(|| "-".into(), |writes| format!("{writes:.3}")),
            row.nulls.map_or_else(|| "-".into(), |nulls| nulls.to_string()),
            beside(row),
        ]);
    }
    format!(
        "{table}messages/s: delivered at the median member, its own and others'; writes: to one peer per local message\n"
    )
}

/// Formats the probe with which a row is compared.
fn beside(row: &Row) -> String {
    match &row.probe {
        None => String::new(),
        Some(Probe::Ring { messages_per_s, ratio }) => {
            format!("{} of a bare ring's {}", percent(ratio), scaled(messages_per_s.median))
        }
        Some(Probe::Mesh { received_bytes_per_s, delivered_bytes_per_s, ratio }) => format!(
            "{}B/s from others, {} of a bare mesh's {}B/s",
            scaled(delivered_bytes_per_s.median),
            percent(ratio),
            scaled(received_bytes_per_s.median)
        ),
        Some(Probe::Unencrypted { messages_per_s, ratio }) => {
            format!("with a key, {} of {} without", percent(ratio), scaled(messages_per_s.median))
        }
    }
}

/// Formats a share with its spread: `60 % (58..63)`.
fn percent(share: &Spread) -> String {
    let Spread { median, min, max } = share;
    format!("{:.0} % ({:.0}..{:.0})", 100.0 * median, 100.0 * min, 100.0 * max)
}
