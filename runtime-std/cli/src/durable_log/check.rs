//! What a log has, and what of it is damaged.

use std::fmt::Write as _;

use serde::Serialize;
use tramontane_log::{Damaged, Log, Recovery, SystemFolder};

use crate::exit::{Failure, Status};
use crate::output::print_result;

/// What was found.
#[derive(Serialize)]
struct Report {
    group: String,
    subgroup: String,
    /// The first record that it has.
    first: u64,
    /// The number that the next record will have.
    end: u64,
    segments: usize,
    segment_bytes: u64,
    batches: u64,
    batch_bytes: u64,
    /// How often it was opened to be written.
    incarnation: u64,
    snapshot: Option<Snapshot>,
    /// A last batch that was never durable, and that the next start leaves out.
    torn: bool,
    /// Records that were set aside: the files.
    aside: Vec<String>,
    values: Vec<String>,
    damage: Vec<Place>,
}

#[derive(Serialize)]
struct Snapshot {
    sequence: u64,
    view: u64,
    bytes: u64,
}

/// A place that is damaged.
#[derive(Serialize)]
struct Place {
    file: String,
    offset: u64,
    /// The first and the last damaged record, where it is records.
    records: Option<[u64; 2]>,
    what: String,
}

/// Prints what was found. Damage is a failure.
pub(super) fn run(log: &Log<SystemFolder>, recovery: &Recovery, json: bool) -> Result<(), Failure> {
    let report = report(log, recovery)?;
    print_result(json, &report, text)?;
    if report.damage.is_empty() {
        return Ok(());
    }
    let places = if report.damage.len() == 1 { "place is" } else { "places are" };
    let what = format_args!("{} {places} damaged", report.damage.len());
    let advice = "start the member in its group: its peers have the records";
    Err(Failure::new(Status::Input, what, advice))
}

fn report(log: &Log<SystemFolder>, recovery: &Recovery) -> Result<Report, Failure> {
    let (segments, segment_bytes) = log.segments();
    let snapshot = log.snapshot().map(|place| Snapshot {
        sequence: place.sequence.0,
        view: place.view.get(),
        bytes: place.bytes,
    });
    let damage = recovery.damage.iter().map(|damage| Place {
        file: damage.file.clone(),
        offset: damage.offset,
        records: match damage.what {
            Damaged::Records { first, end } => Some([first.0, end.0.saturating_sub(1)]),
            _ => None,
        },
        what: damage.to_string(),
    });
    Ok(Report {
        group: log.identity().group.clone(),
        subgroup: log.identity().subgroup.clone(),
        first: log.first().0,
        end: log.end().0,
        segments,
        segment_bytes,
        batches: recovery.batches,
        batch_bytes: recovery.batch_bytes,
        incarnation: log.incarnation(),
        snapshot,
        torn: recovery.is_torn,
        aside: log.asides()?,
        values: log.value_names().map(str::to_owned).collect(),
        damage: damage.collect(),
    })
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "subgroup {} of group {}: {} records, {} to before {}",
        report.subgroup,
        report.group,
        report.end - report.first,
        report.first,
        report.end
    );
    let _ = writeln!(
        text,
        "{} batches of {} bytes in {} segments of {} bytes, opened {} times",
        report.batches,
        report.batch_bytes,
        report.segments,
        report.segment_bytes,
        report.incarnation
    );
    if let Some(snapshot) = &report.snapshot {
        let _ = writeln!(text, "snapshot at {}: {} bytes", snapshot.sequence, snapshot.bytes);
    }
    if report.torn {
        let _ = writeln!(text, "a last batch is torn: it was never durable, and is left out");
    }
    for file in &report.aside {
        let _ = writeln!(text, "{file}: records that the group went on without");
    }
    for place in &report.damage {
        let _ = writeln!(text, "{}", place.what);
    }
    let _ = writeln!(text, "damaged places: {}", report.damage.len());
    text
}
