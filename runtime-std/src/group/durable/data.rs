//! The data folder of a node. It contains a log for each logged subgroup that the node belongs to,
//! in a folder with the subgroup's name.
//!
//! # Invariants
//! - A log belongs to one node and one subgroup of one group, and is open in at most one process.
//! - Records that are not part of the group's continuing history are never deleted: they are kept
//!   under another name, which is reported.

use std::path::{Path, PathBuf};

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_log::{Fit, Identity, Log, Options, SystemFolder};

use super::data_error::DataError;
use super::delivered::Delivered;
use super::log_notice::LogNotice;
use super::taking_over::{LogTakenOver, TakeOverError};
use crate::group::description::terms::{Description, SubgroupDescription};
use crate::group::state::noted_log::NotedLog;
use crate::retention::log_options;

/// The default folder for the membership of a node with a data folder.
pub(crate) const VIEW_FOLDER: &str = "view";

/// The name of the log's value that identifies its owner.
const NODE: &str = "node";

/// The data folder of a node, with its logs open.
#[derive(Debug, Default)]
pub(crate) struct DataFolder {
    path: PathBuf,
    group: String,
    node: NodeId,
    /// The number of record bytes that the logs keep; all if `None`.
    pub(crate) keep_bytes: Option<u64>,
    pub(crate) logs: Vec<LogTakenOver>,
    pub(crate) notices: Vec<LogNotice>,
    /// This node's notes about its logs.
    noted: Vec<NotedLog>,
}

impl DataFolder {
    /// Opens the logs of a node's subgroups, and creates those that do not exist. `noted` are the
    /// node's notes about them.
    pub(crate) fn open(
        description: &Description,
        node: NodeId,
        path: Option<&Path>,
        keep_bytes: Option<u64>,
        noted: Vec<NotedLog>,
    ) -> Result<Self, DataError> {
        let subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
        let is_ours = |of: &SubgroupDescription| of.logged && of.members().contains(&node.get());
        let mut ours = subgroups.filter(|(_, of)| is_ours(of)).peekable();
        let path = match (path, ours.peek()) {
            (None, None) => return Ok(Self::default()),
            (None, Some((_, of))) => return Err(DataError::NoFolder(of.name.clone())),
            (Some(_), None) => return Err(DataError::NothingLogged(node.get())),
            (Some(path), Some(_)) => path.to_owned(),
        };
        let group = description.name.clone();
        let mut folder = Self { path, group, node, keep_bytes, noted, ..Self::default() };
        for (subgroup, of) in ours {
            folder.open_log(subgroup, &of.name)?;
        }
        Ok(folder)
    }

    fn open_log(&mut self, subgroup: SubgroupId, name: &str) -> Result<(), DataError> {
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        if !is_name || name == VIEW_FOLDER {
            return Err(DataError::Name(name.to_owned()));
        }
        let path = self.path.join(name);
        let layer = SystemFolder::create(&path)
            .map_err(|source| DataError::Folder { path: path.clone(), source })?;
        let identity = Identity { group: self.group.clone(), subgroup: name.to_owned() };
        let noted = self.noted.iter().find(|noted| noted.subgroup == name);
        let noted_log = noted.map(NotedLog::noted);
        let options = Options { noted: noted_log, ..log_options(self.keep_bytes) };
        let (mut log, recovery) = Log::open(layer, &identity, options)?;
        let node = self.node.get().to_string();
        match log.value(NODE) {
            None => log.set_values(&[(NODE, Some(node.as_bytes()))])?,
            Some(found) if found == node.as_bytes() => {}
            Some(found) => {
                let found = String::from_utf8_lossy(found).into_owned();
                return Err(DataError::OtherNode { path, found, wanted: self.node.get() });
            }
        }
        let noticed = |damage| LogNotice::Damaged { path: path.clone(), damage };
        self.notices.extend(recovery.damage.into_iter().map(noticed));
        let is_of_another = recovery.fit == Fit::Another;
        if let Some(noted) = noted.filter(|_| recovery.fit != Fit::Whole) {
            let (path, records, had) = (path.clone(), log.end().0, noted.end);
            self.notices.push(LogNotice::Lost { path, records, had, is_of_another });
        }
        self.logs.push(LogTakenOver::new(subgroup, path, log, is_of_another));
        Ok(())
    }

    /// Returns the number of records in all logs.
    pub(crate) fn records(&self) -> u64 {
        self.logs.iter().map(|log| log.log.end().0).sum()
    }

    /// Returns the notes to be recorded about all logs.
    pub(crate) fn notes(&self) -> Vec<NotedLog> {
        self.logs.iter().map(LogTakenOver::note).collect()
    }

    /// Keeps a log that does not match this node's notes under another name, because its common
    /// part with the group's log is unknown.
    pub(crate) fn set_other_aside(&mut self, subgroup: SubgroupId) -> Result<(), DataError> {
        match self.log(subgroup) {
            Some(log) if log.is_of_another => self.begin_anew_in(subgroup),
            _ => Ok(()),
        }
    }

    /// Keeps all logs of an earlier group under other names, because the group starts from an empty
    /// state.
    pub(crate) fn begin_anew(&mut self) -> Result<(), DataError> {
        let all: Vec<_> = self.logs.iter().map(|log| log.subgroup).collect();
        all.into_iter().try_for_each(|subgroup| self.begin_anew_in(subgroup))
    }

    /// Keeps a subgroup's log under another name, because the group's history does not continue
    /// from any part of it.
    pub(crate) fn begin_anew_in(&mut self, subgroup: SubgroupId) -> Result<(), DataError> {
        let is_touched = |log: &LogTakenOver| log.subgroup == subgroup && !log.is_untouched();
        let Some(at) = self.logs.iter().position(is_touched) else { return Ok(()) };
        let LogTakenOver { subgroup, path, log, .. } = self.logs.remove(at);
        let records = log.end().0.saturating_sub(log.first().0);
        let name = log.identity().subgroup.clone();
        drop(log);
        let kept = set_aside(&path)
            .map_err(|source| DataError::SetAside { path: path.clone(), source })?;
        tracing::info!(%subgroup, records, kept = %kept.display(), "an earlier log is set aside");
        self.notices.push(LogNotice::SetAside { records, kept });
        self.noted.retain(|noted| noted.subgroup != name);
        self.open_log(subgroup, &name)
    }

    /// Sets aside a log's records after the first `records`, because the group continued without
    /// them.
    pub(crate) fn cut(&mut self, subgroup: SubgroupId, records: u64) -> Result<(), TakeOverError> {
        let aside = self.log(subgroup).map(|log| log.cut(records)).transpose()?.flatten();
        if let Some((records, kept)) = aside {
            tracing::info!(%subgroup, records, kept = %kept.display(), "the end of a log is set aside");
            self.notices.push(LogNotice::SetAside { records, kept });
        }
        Ok(())
    }

    /// Replaces damaged records with a member's copies. Returns false if some copies are missing.
    pub(crate) fn repair(
        &mut self,
        subgroup: SubgroupId,
        from: u64,
        to: u64,
        records: &[Delivered],
    ) -> Result<bool, TakeOverError> {
        let Some(log) = self.log(subgroup) else { return Ok(false) };
        let is_repaired = log.repair(from, to, records)?;
        if is_repaired {
            let path = log.path.clone();
            self.notices.push(LogNotice::Repaired { path, from, to });
        }
        Ok(is_repaired)
    }

    /// Returns the log of a subgroup, if it is logged.
    pub(crate) fn log(&mut self, subgroup: SubgroupId) -> Option<&mut LogTakenOver> {
        self.logs.iter_mut().find(|log| log.subgroup == subgroup)
    }
}

/// Durably renames a folder to `path.1`, `path.2` and so on, whichever is the first free name.
pub(crate) fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let is_free = |kept: &PathBuf| std::fs::symlink_metadata(kept).is_err();
    let kept = (1..u32::MAX).map(numbered).find(is_free).unwrap_or_default();
    std::fs::rename(path, &kept)?;
    if let Some(above) = path.parent() {
        std::fs::File::open(above)?.sync_all()?;
    }
    Ok(kept)
}
