//! The contents of a log, and its damage.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use tramontane_log::{Damaged, Fit, Log, Noted, Recovery, SystemFolder};
use tramontane_runtime::group::{StartError, noted_log};

use tramontane_local::exit::{Failure, Status};
use tramontane_local::output::print_result;

/// Default name of the folder in which a node with a data folder remembers its membership.
const VIEW: &str = "view";

/// The findings of a check, as printed or as `--json` prints them.
#[derive(Serialize)]
struct LogReport {
    group: String,
    subgroup: String,
    /// Number of the first record in the log.
    first: u64,
    /// Number that the next record will have.
    end: u64,
    segments: usize,
    segment_bytes: u64,
    batches: u64,
    batch_bytes: u64,
    /// Number of times that the log was opened for writing.
    incarnation: u64,
    snapshot: Option<SnapshotLine>,
    /// Whether the next start will discard the last batch, which was never noted as durable.
    torn: bool,
    /// Number of records that the node noted as durable in this log; `None` if unknown.
    noted: Option<u64>,
    /// The relation between the log and its node's note.
    fit: &'static str,
    /// Files with records that were set aside.
    aside: Vec<String>,
    values: Vec<String>,
    damage: Vec<DamagedPlace>,
}

#[derive(Serialize)]
struct SnapshotLine {
    sequence: u64,
    view: u64,
    bytes: u64,
}

/// A damaged part of a log.
#[derive(Serialize)]
struct DamagedPlace {
    file: String,
    offset: u64,
    /// The first and last damaged records, if records are damaged.
    records: Option<[u64; 2]>,
    what: String,
}

/// Prints the findings. Fails if the log is damaged, or holds fewer records than its node noted.
pub(super) fn run(folder: &Path, state: Option<&Path>, json: bool) -> Result<(), Failure> {
    let noted = noted(folder, state)?;
    let (log, recovery) = super::open(folder, noted)?;
    let report = report(&log, &recovery, noted)?;
    print_result(json, &report, text)?;
    if recovery.fit != Fit::Whole {
        let advice = "start the member in its group: its peers have the records";
        return Err(Failure::new(Status::Input, loss(&report), advice));
    }
    if report.damage.is_empty() {
        return Ok(());
    }
    let places = if report.damage.len() == 1 { "place is" } else { "places are" };
    let what = format_args!("{} {places} damaged", report.damage.len());
    let advice = "start the member in its group: its peers have the records";
    Err(Failure::new(Status::Input, what, advice))
}

/// Returns the node's note on the log in `folder`, which is named after the subgroup. The folder of
/// the node's state is usually next to the log.
fn noted(folder: &Path, state: Option<&Path>) -> Result<Option<Noted>, Failure> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let beside = folder.parent().map(|above| above.join(VIEW));
    if let Some(state) = state.filter(|state| !state.is_dir()) {
        let what = format_args!("there is no folder {}", state.display());
        return Err(Failure::usage(what, "give the folder that the node has as --state"));
    }
    let Some(state) = state.map(Path::to_owned).or(beside) else { return Ok(None) };
    let subgroup = folder.file_name().unwrap_or_default().to_string_lossy();
    noted_log(&state, &subgroup).map_err(|error| Failure::from(StartError::from(error)))
}

/// Describes in words what a log has lost.
fn loss(report: &LogReport) -> String {
    let LogReport { end, fit, .. } = report;
    let had = report.noted.unwrap_or(0);
    match *fit {
        "another" => format!(
            "it is not the log that its node wrote, or it is an older copy of that log: it ends at \
             {end}, but {had} records were durable"
        ),
        _ => format!("it ends at {end}, but its node had recorded {had} durable records"),
    }
}

fn report(
    log: &Log<SystemFolder>,
    recovery: &Recovery,
    noted: Option<Noted>,
) -> Result<LogReport, Failure> {
    let (segments, segment_bytes) = log.segments();
    let snapshot = log.snapshot().map(|place| SnapshotLine {
        sequence: place.sequence.0,
        view: place.view.get(),
        bytes: place.bytes,
    });
    let damage = recovery.damage.iter().map(|damage| DamagedPlace {
        file: damage.file.clone(),
        offset: damage.offset,
        records: match damage.what {
            Damaged::Records { first, end } => Some([first.0, end.0.saturating_sub(1)]),
            _ => None,
        },
        what: damage.to_string(),
    });
    Ok(LogReport {
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
        noted: noted.map(|noted| noted.end.0),
        fit: match recovery.fit {
            Fit::Whole => "whole",
            Fit::Short => "short",
            Fit::Another => "another",
        },
        aside: log.asides()?,
        values: log.value_names().map(str::to_owned).collect(),
        damage: damage.collect(),
    })
}

/// Returns a number and its noun.
fn counted(number: u64, noun: &str) -> String {
    match (number, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "batch") => format!("{number} batches"),
        _ => format!("{number} {noun}s"),
    }
}

fn text(report: &LogReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "subgroup {} of group {}: {}{}",
        report.subgroup,
        report.group,
        counted(report.end - report.first, "record"),
        match report.end - report.first {
            0 => format!(", the next is {}", report.end),
            1 => format!(" ({})", report.first),
            _ => format!(" ({} to {})", report.first, report.end - 1),
        }
    );
    let _ = writeln!(
        text,
        "{} of {} in {} of {}, opened {}",
        counted(report.batches, "batch"),
        counted(report.batch_bytes, "byte"),
        counted(report.segments as u64, "segment"),
        counted(report.segment_bytes, "byte"),
        counted(report.incarnation, "time")
    );
    if let Some(snapshot) = &report.snapshot {
        let _ = writeln!(text, "snapshot at {}: {} bytes", snapshot.sequence, snapshot.bytes);
    }
    if report.torn {
        let known = match report.noted {
            Some(_) => "its node did not record that it was durable",
            None => {
                "it was never durable, or it is damaged; only its node's --state folder can tell"
            }
        };
        let _ = writeln!(text, "the last batch is torn and is ignored: {known}");
    }
    if report.fit != "whole" {
        let _ = writeln!(text, "{}", loss(report));
    }
    for file in &report.aside {
        let _ = writeln!(text, "{file}: records that are not part of the group's log");
    }
    for place in &report.damage {
        let _ = writeln!(text, "{}", place.what);
    }
    let _ = writeln!(text, "damaged places: {}", report.damage.len());
    text
}
