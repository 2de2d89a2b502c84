//! What an experiment prints: a table for people, an object for programs.

use serde::Serialize;

use crate::spread::Spread;
use tramontane_local::table::{Table, scaled};
use tramontane_runtime::rdma::PostCounts;

/// What a run is compared with: processes that carry bytes with nothing of the protocol, in turn
/// with it.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Probe {
    /// The bare ring of two processes.
    Ring {
        /// Messages a second at its median process, own and peer's.
        messages_per_s: Spread,
        /// The run's rate by the probe's, round by round.
        ratio: Spread,
    },
    /// The bare mesh of TCP connections.
    Mesh {
        /// Bytes a second that its median process received from the others.
        received_bytes_per_s: Spread,
        /// Bytes a second of others' messages that were delivered at the run's median member;
        /// headers, and the member's own messages, are not counted.
        delivered_bytes_per_s: Spread,
        /// The second by the first, round by round.
        ratio: Spread,
    },
}

/// One configuration's result.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `shm`, `tcp` or `verbs`.
    pub fabric: &'static str,
    /// Members.
    pub nodes: u16,
    /// Senders among them.
    pub senders: u16,
    /// Bytes of a message.
    pub bytes: u32,
    /// Slots of a sender.
    pub window: u32,
    /// Which thread steps.
    pub drive: String,
    /// Which of the paper's techniques are on.
    pub techniques: String,
    /// Messages delivered a second at the median member, own and others' together.
    pub messages_per_s: Spread,
    /// The same in bytes, of the median run.
    pub bytes_per_s: f64,
    /// Writes posted for each own message, to one peer; not counted where a polling thread steps.
    pub writes_per_message: Option<f64>,
    /// Rounds used without a message, at all members, in the last run; not counted there either.
    pub nulls: Option<u64>,
    /// The probe, where it was run.
    pub probe: Option<Probe>,
    /// What the fabric counted at each member, by rank, in the last run; empty where it does not
    /// count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<PostCounts>,
}

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The machine that this ran on.
    pub machine: String,
    /// One a configuration.
    pub rows: Vec<Row>,
}

impl Report {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n{}", self.machine, table(&self.rows))
    }
}

/// The rows as a table.
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
        "{table}messages/s: delivered at the median member, own and others'; writes: for each own message, to one peer\n"
    )
}

/// What a row is to be compared with.
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
    }
}

/// A share with its spread: `60 % (58..63)`.
fn percent(share: &Spread) -> String {
    let Spread { median, min, max } = share;
    format!("{:.0} % ({:.0}..{:.0})", 100.0 * median, 100.0 * min, 100.0 * max)
}
