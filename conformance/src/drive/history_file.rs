//! Writes a scenario's history.
//!
//! Invariants:
//! - a node's times never decrease, although its lines and its faults arrive by different paths;
//! - every record is passed to the system at once, so that a killed driver leaves a complete
//!   history up to that point.

use std::borrow::Cow;
use std::fs::File;
use std::io::LineWriter;
use std::path::{Path, PathBuf};

use super::error::DriveError;
use super::lines::Clock;
use super::plan::PlannedGroup;
use crate::history::{EndReason, Event, FaultKind, VERSION, Writer};

/// A history that is being written.
pub(super) struct HistoryFile {
    writer: Writer<LineWriter<File>>,
    path: PathBuf,
    clock: Clock,
    names: Vec<String>,
    /// The time of each node's last record.
    last_ns: Vec<u64>,
}

impl HistoryFile {
    /// Begins a history.
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub(super) fn begin(path: &Path, clock: Clock, names: Vec<String>) -> Result<Self, DriveError> {
        let file = File::create(path).map_err(|error| DriveError::output(path, error))?;
        let writer = Writer::new(LineWriter::new(file));
        let last_ns = vec![0; names.len()];
        Ok(Self { writer, path: path.to_owned(), clock, names, last_ns })
    }

    /// Writes a record unchanged.
    ///
    /// # Errors
    /// Fails if the record cannot be written, usually because the disk is full.
    pub(super) fn write(&mut self, event: &Event<'_>) -> Result<(), DriveError> {
        self.writer.write(event).map_err(|error| DriveError::output(&self.path, error))
    }

    /// Writes the first line.
    pub(super) fn run(
        &mut self,
        scenario: &str,
        seed: u64,
        adapter: Option<&str>,
    ) -> Result<(), DriveError> {
        self.write(&Event::Run {
            version: VERSION,
            scenario: Some(scenario.into()),
            seed: Some(seed),
            adapter: adapter.map(Cow::Borrowed),
        })
    }

    /// Writes a group.
    pub(super) fn group(&mut self, group: &str, of: &PlannedGroup) -> Result<(), DriveError> {
        let names =
            |nodes: &[usize]| nodes.iter().map(|node| self.names[*node].clone().into()).collect();
        let (members, senders) = (names(&of.members), names(&of.senders));
        self.write(&Event::Group { group: group.into(), members, senders, order: of.order })
    }

    /// Writes a record of one node with its time, adjusted if the node's last record is later.
    pub(super) fn of<'e>(
        &mut self,
        node: usize,
        came_ns: u64,
        event: impl FnOnce(u64, Cow<'e, str>) -> Event<'e>,
    ) -> Result<(), DriveError> {
        let t_ns = came_ns.max(self.last_ns[node]);
        self.last_ns[node] = t_ns;
        let name = self.names[node].clone();
        self.write(&event(t_ns, name.into()))
    }

    /// Writes that a process started now.
    pub(super) fn start(&mut self, node: usize, inc: u32) -> Result<(), DriveError> {
        self.of(node, self.clock.now_ns(), |t_ns, node| Event::Start { t_ns, node, inc })
    }

    /// A process ended.
    pub(super) fn end(
        &mut self,
        node: usize,
        inc: u32,
        came_ns: u64,
        reason: EndReason,
    ) -> Result<(), DriveError> {
        self.of(node, came_ns, |t_ns, node| Event::End { t_ns, node, inc, reason })
    }

    /// Writes that a fault was injected at nodes at this time.
    pub(super) fn fault(
        &mut self,
        kind: FaultKind,
        nodes: &[usize],
        at_ns: u64,
    ) -> Result<(), DriveError> {
        self.fault_told(kind, nodes, at_ns, None)
    }

    /// Records that a fault was injected at nodes, with a description.
    pub(super) fn fault_told(
        &mut self,
        kind: FaultKind,
        nodes: &[usize],
        at_ns: u64,
        how: Option<&str>,
    ) -> Result<(), DriveError> {
        let t_ns = nodes.iter().map(|node| self.last_ns[*node]).fold(at_ns, u64::max);
        for &node in nodes {
            self.last_ns[node] = t_ns;
        }
        let nodes = nodes.iter().map(|node| self.names[*node].clone().into()).collect();
        self.write(&Event::Fault { t_ns, kind, nodes, how: how.map(Cow::Borrowed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_times_never_decrease() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        let names = vec!["n0".to_owned(), "n1".to_owned()];
        let mut history_file = HistoryFile::begin(&path, Clock::start(), names).expect("a file");
        let view = |t_ns, node| Event::Durable { t_ns, node, inc: 1, group: "g0".into(), upto: 0 };
        history_file.of(0, 50, view).expect("written");
        history_file.of(0, 40, view).expect("written");
        history_file.of(1, 45, view).expect("written");
        history_file.fault(FaultKind::Kill, &[0, 1], 47).expect("written");
        history_file.of(1, 48, view).expect("written");
        let text = std::fs::read_to_string(&path).expect("readable, though nobody closed it");
        let times: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split("\"t_ns\":").nth(1)?.split(',').next())
            .collect();
        assert_eq!(times, ["50", "50", "45", "50", "50"]);
    }

    #[test]
    fn full_disk_error_names_the_history_file() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            return;
        }
        let mut history_file =
            HistoryFile::begin(full, Clock::start(), vec!["n0".to_owned()]).expect("it opens");
        let error = history_file.start(0, 1).expect_err("nothing fits");
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }
}
