//! The rows of a real fabric as a drawing: over members, or over the bytes of a message or of a
//! block, whichever varies.

use super::report::{Disturbed, Row};
use crate::plot::{Drawing, MILLISECONDS, counted};
use tramontane_local::options::name;

/// What the horizontal axis counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    Members,
    Bytes,
    BlockBytes,
}

impl Axis {
    const ALL: [Self; 3] = [Self::Members, Self::Bytes, Self::BlockBytes];

    /// The first of which there are several; members if nothing varies.
    fn of(rows: &[Row]) -> Self {
        let varies = |axis: &Self| {
            rows.iter().any(|row| axis.place(row) != rows.first().map_or(0, |row| axis.place(row)))
        };
        Self::ALL.into_iter().find(varies).unwrap_or(Self::Members)
    }

    fn place(self, row: &Row) -> usize {
        match self {
            Self::Members => usize::from(row.nodes),
            Self::Bytes => row.bytes,
            Self::BlockBytes => row.block_bytes,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Members => "members",
            Self::Bytes => "bytes of a message",
            Self::BlockBytes => "bytes of a block",
        }
    }
}

/// A line for everything else that differs, and for each probe.
pub(super) fn drawing(rows: &[Row]) -> Drawing {
    let axis = Axis::of(rows);
    let fabric = match rows.first().map(|row| row.fabric) {
        Some("tcp") => "TCP",
        _ => "shared memory",
    };
    let title = format!("One message to all members over {fabric}");
    let mut drawing = Drawing::new(title, axis.name(), MILLISECONDS);
    for row in rows {
        let place = axis.place(row) as f64;
        drawing.add(label(row, rows, axis), place, row.latency_ms);
        for probe in &row.probes {
            let label = [name(&probe.probe)].into_iter().chain(size(row, rows, axis));
            let label = label.collect::<Vec<_>>().join(", ");
            // A probe knows nothing of algorithms and blocks: its first figure stands for all.
            if !drawing.has(&label, place) {
                drawing.add(label, place, probe.latency_ms);
            }
        }
    }
    drawing
}

/// What tells a row's line from the others.
fn label(row: &Row, rows: &[Row], axis: Axis) -> String {
    let varies = |differs: fn(&Row, &Row) -> bool| rows.iter().any(|other| differs(other, row));
    let experiment =
        row.experiment.filter(|_| varies(|one, other| one.experiment != other.experiment));
    let has_blocks = axis != Axis::BlockBytes
        && varies(|one, other| one.bytes == other.bytes && one.block_bytes != other.block_bytes);
    let has_groups = varies(|one, other| one.groups != other.groups);
    let words = experiment.map(|experiment| format!("{}: {}", name(&experiment), row.algorithm));
    let words = words.or_else(|| Some(row.algorithm.to_owned())).into_iter();
    let words = words.chain(size(row, rows, axis));
    let words = words.chain(has_blocks.then(|| format!("blocks of {}", bytes(row.block_bytes))));
    let words = words.chain(has_groups.then(|| senders(row).to_owned()));
    let words = words.chain(row.disturbance.as_ref().map(Disturbed::short));
    words.collect::<Vec<_>>().join(", ")
}

/// The bytes of its message, where they are neither the axis nor all the same.
fn size(row: &Row, rows: &[Row], axis: Axis) -> Option<String> {
    let varies = axis != Axis::Bytes && rows.iter().any(|other| other.bytes != row.bytes);
    varies.then(|| bytes(row.bytes))
}

/// `256 KiB`, or as many as they are.
fn bytes(count: usize) -> String {
    let counted = counted(count as f64);
    if counted.ends_with('i') { counted + "B" } else { counted + " B" }
}

/// Which of the members send, each in a group of its own.
fn senders(row: &Row) -> &'static str {
    match row.groups {
        1 => "one sends",
        all if all == row.nodes => "all send",
        _ => "half send",
    }
}
