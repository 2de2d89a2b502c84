//! The data folder of a replica, before the replica runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tramontane_core::tram::ReplicaId;
use tramontane_log::{Identity, Log, OpenLogError, ReadError, SystemFolder};

use super::content::{ContentError, SavedContent};
use super::folder_error::FolderError;
use crate::group::durable::data::set_aside;
use crate::retention::log_options;
use crate::shards::description::Description;
use crate::shards::founding_stage::FoundingStage;
use crate::shards::places::Places;
use crate::shards::service::Formation;
use crate::shards::shown_disks::ShownDisks;

/// The time within which an earlier replica of this process closes its folder.
const CLOSING: Duration = Duration::from_secs(5);
const CLOSING_PAUSE: Duration = Duration::from_millis(10);

/// The names of the log's values.
const OVERLAY: &str = "overlay";
pub(super) const INCARNATION: &str = "incarnation";
pub(super) const FOUNDERS: &str = "founders";
pub(super) const STAGE: &str = "stage";
pub(super) const SINCE: &str = "since";

/// The folder of a replica that starts.
#[derive(Debug)]
pub(in crate::shards) struct ReplicaFolder {
    pub(super) log: Log<SystemFolder>,
    pub(super) keep_bytes: u64,
    /// The state on the disk, unless the replica is new or has lost it.
    pub(super) content: Option<SavedContent>,
    pub(super) shown: ShownDisks,
    /// A fact about the folder that an operator should know.
    pub(super) notice: Option<String>,
}

impl ReplicaFolder {
    /// Opens a replica's folder in a data folder, if the overlay is durable.
    pub(in crate::shards) fn open(
        description: &Description,
        places: &Places,
        own: ReplicaId,
        data: Option<&Path>,
        keep_bytes: u64,
    ) -> Result<Option<Self>, FolderError> {
        let name = places.name(own);
        let path = match (description.durable, data) {
            (false, None) => return Ok(None),
            (true, None) => return Err(FolderError::NoFolder(name)),
            (false, Some(_)) => return Err(FolderError::NotDurable(name)),
            (true, Some(data)) => data.join(&name),
        };
        let identity = Identity { group: description.name.clone(), subgroup: name };
        let log = open_log(&path, &identity, keep_bytes)?;
        let (content, shown, notice) = (None, ShownDisks::default(), None);
        let mut folder = Self { log, keep_bytes, content, shown, notice };
        folder.check_overlay(places.overlay().digest(), path.clone())?;
        match SavedContent::read(&folder.log, &mut folder.shown) {
            Ok(Some(content)) if !content.record.is_voter() => folder.begin_anew(&path, None)?,
            Ok(content) => folder.content = content,
            Err(ContentError::Read(error @ ReadError::Io { .. })) => return Err(error.into()),
            Err(error) => folder.begin_anew(&path, Some(&error))?,
        }
        Ok(Some(folder))
    }

    fn check_overlay(&mut self, digest: u64, path: PathBuf) -> Result<(), FolderError> {
        let digest = digest.to_le_bytes();
        match self.log.value(OVERLAY) {
            None => Ok(self.log.set_values(&[(OVERLAY, Some(&digest))])?),
            Some(found) if found == digest => Ok(()),
            Some(_) => Err(FolderError::OtherOverlay { path }),
        }
    }

    /// Continues with an empty log, because the replica cannot continue from this one, or did not
    /// count in quorums when it was written. A damaged log is kept under another name. What the
    /// replica knows about the others remains.
    fn begin_anew(
        &mut self,
        path: &Path,
        damage: Option<&ContentError>,
    ) -> Result<(), FolderError> {
        let values: BTreeMap<String, Vec<u8>> = self
            .log
            .value_names()
            .filter_map(|name| Some((name.to_owned(), self.log.value(name)?.to_vec())))
            .collect();
        let values: Vec<(&str, Option<&[u8]>)> =
            values.iter().map(|(name, value)| (name.as_str(), Some(value.as_slice()))).collect();
        let identity = self.log.identity().clone();
        let failed = |source| FolderError::Folder { path: path.to_owned(), source };
        match damage {
            Some(damage) => {
                let kept = set_aside(path).map_err(failed)?;
                self.notice = Some(format!(
                    "the log on this replica's disk is damaged ({damage}) and kept in {}; the \
                     replica returns without it",
                    kept.display()
                ));
            }
            None => std::fs::remove_dir_all(path).map_err(failed)?,
        }
        self.log = open_log(path, &identity, self.keep_bytes)?;
        Ok(self.log.set_values(&values)?)
    }

    /// Returns the incarnation under which the replica last ran, or zero if it has never run.
    pub(super) fn incarnation(&self) -> u16 {
        let bytes = self.log.value(INCARNATION).and_then(|value| value.try_into().ok());
        bytes.map_or(0, u16::from_le_bytes)
    }

    /// Returns the incarnation under which the replica began the disk from which it continues.
    pub(super) fn since(&self) -> Option<u16> {
        let since = self.log.value(SINCE).filter(|_| self.content.is_some())?;
        Some(u16::from_le_bytes(since.try_into().ok()?))
    }

    /// Returns how far the group has formed.
    pub(super) fn formation(&self) -> Formation {
        let cells = |value: &[u8]| {
            value.as_chunks::<8>().0.iter().map(|cell| u64::from_le_bytes(*cell)).collect()
        };
        let byte = self.log.value(STAGE).and_then(|value| value.first().copied());
        Formation {
            founders: self.log.value(FOUNDERS).map(cells),
            stage: FoundingStage::of_disk(byte, self.content.is_some()),
        }
    }
}

/// Opens a log. An earlier replica of this process may just be closing it.
fn open_log(
    path: &Path,
    identity: &Identity,
    keep_bytes: u64,
) -> Result<Log<SystemFolder>, FolderError> {
    let until = Instant::now() + CLOSING;
    loop {
        let layer = SystemFolder::create(path)
            .map_err(|source| FolderError::Folder { path: path.to_owned(), source })?;
        match Log::open(layer, identity, log_options(Some(keep_bytes))) {
            Ok((log, _)) => return Ok(log),
            Err(OpenLogError::InUse { .. }) if Instant::now() < until => {
                std::thread::sleep(CLOSING_PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
