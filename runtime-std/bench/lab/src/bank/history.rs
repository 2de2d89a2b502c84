//! The histories of a demo: each process writes its own, and the parent merges them by time and has
//! them judged by the conformance suite.
//!
//! Records that a process wrote before it was killed are in its file, because each delivery is one
//! system call.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use tramontane_conformance::check::{Outcome, Verdict, judge};
use tramontane_conformance::history::{Event, Writer, parse};

/// The history of one process.
#[derive(Debug)]
pub(super) struct HistoryFile {
    file: File,
}

impl HistoryFile {
    /// Creates an empty history.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)? })
    }

    /// Writes these records in one system call.
    pub(super) fn write<'e>(&self, events: impl IntoIterator<Item = Event<'e>>) {
        let mut lines = Vec::new();
        let mut writer = Writer::new(&mut lines);
        for event in events {
            // Writing to a vector cannot fail.
            let _ = writer.write(&event);
        }
        if let Err(error) = (&self.file).write_all(&lines) {
            tracing::error!(%error, "a history cannot be written");
        }
    }
}

/// Returns the name of a message: its client, the client's incarnation, and its number there.
pub(super) fn message_name((client, incarnation, number): (u16, u32, u64)) -> String {
    format!("c{client}/{incarnation}/{number}")
}

/// Returns the time of a record.
fn time_of(event: &Event<'_>) -> u64 {
    match event {
        Event::Start { t_ns, .. }
        | Event::View { t_ns, .. }
        | Event::Multicast { t_ns, .. }
        | Event::Accepted { t_ns, .. }
        | Event::Refused { t_ns, .. }
        | Event::Leave { t_ns, .. }
        | Event::Stop { t_ns, .. }
        | Event::Deliver { t_ns, .. }
        | Event::Durable { t_ns, .. }
        | Event::Leader { t_ns, .. }
        | Event::Stats { t_ns, .. }
        | Event::Fault { t_ns, .. }
        | Event::End { t_ns, .. } => *t_ns,
        Event::Run { .. } | Event::Group { .. } | Event::Unknown { .. } => 0,
    }
}

/// All records of a run, sorted by time.
pub(super) struct Merged {
    lines: Vec<(u64, String)>,
}

impl Merged {
    /// Merges the records of the parent and those in the files of its processes. A last line cut
    /// off by a kill is ignored, because its event has not happened yet.
    pub(super) fn new(own: &[Event<'_>], files: &[PathBuf]) -> io::Result<Self> {
        let mut lines = Vec::new();
        for event in own {
            lines.push((time_of(event), serde_json::to_string(event)?));
        }
        for file in files {
            let text = match std::fs::read_to_string(file) {
                // The process was killed before it created the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read?,
            };
            let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            for line in whole.map(str::trim_end) {
                let event = parse(line).map_err(|error| io::Error::other(error.to_string()))?;
                lines.push((time_of(&event), line.to_owned()));
            }
        }
        // Records of one process keep their order.
        lines.sort_by_key(|(time, _)| *time);
        Ok(Self { lines })
    }

    /// Iterates over all records.
    pub(super) fn events(&self) -> impl Iterator<Item = Event<'_>> {
        self.lines.iter().filter_map(|(_, line)| parse(line).ok())
    }

    /// Writes all records to a file.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for (_, line) in &self.lines {
            writeln!(file, "{line}")?;
        }
        file.flush()
    }

    /// Returns the suite's verdict.
    pub(super) fn judge(&self) -> io::Result<String> {
        let mut text = String::new();
        for (_, line) in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        let verdict =
            judge(text.as_bytes()).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(in_words(&verdict))
    }
}

/// Returns `passed`, or a description of the failure.
fn in_words(verdict: &Verdict) -> String {
    let wrong: Vec<String> = verdict
        .judgements
        .iter()
        .filter_map(|judgement| match &judgement.outcome {
            Outcome::Broken { times, finding } => {
                Some(format!("{} failed {times} times: {}", judgement.check, finding.what))
            }
            Outcome::Inconclusive(why) => Some(format!("{} inconclusive: {why}", judgement.check)),
            Outcome::Held { .. } | Outcome::NotJudged(_) => None,
        })
        .collect();
    if wrong.is_empty() { "passed".to_owned() } else { wrong.join("; ") }
}
