//! What an experiment prints: a table for people, an object for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::options::Variant;
use crate::plot::Drawing;
use crate::profiles::{self, Machine};
use crate::simulated::{self, Inside};
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
    /// `shm`, `tcp`, `verbs` or `sim`.
    pub fabric: &'static str,
    /// Which protocol it is: `tramontane`, or one of the simulator's Derechos.
    pub variant: Variant,
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
    /// Wait after each message of the delayed senders.
    pub delay_us: u64,
    /// How many senders are delayed.
    pub delayed: u16,
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
    /// With delayed senders: bytes a second by what the others reach alone.
    pub others_alone: Option<f64>,
    /// What only the simulator shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
}

/// The machine that was simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    profile: String,
    about: String,
    /// Parameters that the command line gave other values.
    set: Vec<profiles::Row>,
}

impl Simulated {
    /// A machine.
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        let set = machine.rows.iter().filter(|row| row.set_by == "--set").cloned();
        Self { profile: machine.name.clone(), about: machine.about.clone(), set: set.collect() }
    }

    /// In a line.
    pub(crate) fn text(&self) -> String {
        let set: Vec<String> =
            self.set.iter().map(|row| format!("{}={}", row.name, row.value)).collect();
        let with = if set.is_empty() { String::new() } else { format!(", with {}", set.join(" ")) };
        format!("simulated: {}{with}: {}", self.profile, self.about)
    }
}

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Report<'r> {
    /// The machine that this ran on.
    pub machine: String,
    /// The machine that was simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// One a configuration.
    pub rows: &'r [Row],
}

impl Report<'_> {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.simulated {
            Some(machine) => {
                format!("{}\n{}", machine.text(), simulated::report::table(self.rows))
            }
            None => format!("{}\n{}", self.machine, table(self.rows)),
        }
    }
}

/// Which protocol it is if it is not ours, which techniques are on, and who waits.
pub(crate) fn labelled(row: &Row) -> String {
    let mut techniques = match row.variant {
        Variant::Tramontane => row.techniques.clone(),
        variant => format!("{} (derecho {})", row.techniques, variant.name()),
    };
    if row.delayed > 0 {
        // Writing to a string cannot fail.
        let _ = write!(techniques, ", {} wait {} us", row.delayed, row.delay_us);
    }
    techniques
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
            labelled(row),
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
    let mut words = Vec::new();
    match &row.probe {
        None => {}
        Some(Probe::Ring { messages_per_s, ratio }) => {
            words.push(format!(
                "{} of a bare ring's {}",
                percent(ratio),
                scaled(messages_per_s.median)
            ));
        }
        Some(Probe::Mesh { received_bytes_per_s, delivered_bytes_per_s, ratio }) => {
            words.push(format!(
                "{}B/s from others, {} of a bare mesh's {}B/s",
                scaled(delivered_bytes_per_s.median),
                percent(ratio),
                scaled(received_bytes_per_s.median)
            ))
        }
    }
    if let Some(ratio) = row.others_alone {
        words.push(format!("{:.1} % of what the others reach alone", 100.0 * ratio));
    }
    words.join("; ")
}

/// A share with its spread: `60 % (58..63)`.
fn percent(share: &Spread) -> String {
    let Spread { median, min, max } = share;
    format!("{:.0} % ({:.0}..{:.0})", 100.0 * median, 100.0 * min, 100.0 * max)
}

/// The rows as a drawing: a line for each size of message and what is on.
pub(crate) fn drawing(rows: &[Row]) -> Drawing {
    let title = rows.first().map_or_else(String::new, |row| {
        format!("Delivered at each member, {} fabric, window {}", row.fabric, row.window)
    });
    let mut drawing = Drawing::new(title, "members", "GB/s");
    for row in rows {
        let label = format!("{} B, techniques: {}", row.bytes, labelled(row));
        let Spread { median, min, max } = row.messages_per_s;
        let gigabytes = |rate: f64| rate * f64::from(row.bytes) / 1e9;
        let figure = Spread { median: gigabytes(median), min: gigabytes(min), max: gigabytes(max) };
        drawing.add(label, row.nodes.into(), figure);
    }
    drawing
}
