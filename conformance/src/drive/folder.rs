//! The folder of a run: histories, logs, and the members' storage.
//!
//! Invariant: nothing is ever removed from a folder unless a run created it. A marker file shows
//! that a run created a folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::DriveError;
use super::scenarios::SCENARIOS;

/// The folder used to ask an adapter for its features, if no scenario has done so before.
pub(super) const ASKING: &str = "asking";

/// The file that marks a folder as created by a run, and locks it while a run uses it.
const MARK: &str = ".tramontane-conformance";

/// The text of the marker file.
const MARK_TEXT: &str =
    "Made by tramontane-conformance, which removes what is in here at its next run.\n";

/// A run's folder. No other run uses it while this value exists.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    mark: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A process that is just starting has a copy of the descriptor, and would keep the lock.
        let _ = flock(&self.mark, FlockOperation::Unlock);
    }
}

impl Folder {
    /// Creates the folder, or reuses the folder of an earlier run and removes its scenarios.
    ///
    /// # Errors
    /// Fails if the folder belongs to something else, is in use, or cannot be created.
    pub(super) fn take(path: &Path) -> Result<Self, DriveError> {
        let failed = |error: io::Error| DriveError::output(path, error);
        fs::create_dir_all(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let mark_path = path.join(MARK);
        if !mark_path.exists() && fs::read_dir(&path).map_err(failed)?.next().is_some() {
            return Err(DriveError::NotOurs(path));
        }
        let mark = File::options().create(true).append(true).open(&mark_path).map_err(failed)?;
        match flock(&mark, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DriveError::InUse(path)),
            Err(error) => return Err(failed(error.into())),
        }
        fs::write(&mark_path, MARK_TEXT).map_err(failed)?;
        for name in SCENARIOS.iter().map(|scenario| scenario.name).chain([ASKING]) {
            remove(&path.join(name)).map_err(failed)?;
        }
        Ok(Self { path, mark })
    }

    /// Creates a scenario's folder with the folders that members use, and removes those of an
    /// earlier attempt.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub(super) fn scenario(
        &self,
        name: &str,
        nodes: &[String],
    ) -> Result<ScenarioFolder, DriveError> {
        let folder = ScenarioFolder(self.path.join(name));
        remove(&folder.0).map_err(|error| DriveError::output(&folder.0, error))?;
        for path in nodes.iter().map(|node| folder.storage(node)).chain([folder.shared()]) {
            fs::create_dir_all(&path).map_err(|error| DriveError::output(&path, error))?;
        }
        Ok(folder)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The files of one scenario.
#[derive(Debug)]
pub(super) struct ScenarioFolder(PathBuf);

impl ScenarioFolder {
    pub(super) fn history(&self) -> PathBuf {
        self.0.join("history.jsonl")
    }

    /// Returns the path of a node's standard error, for all its incarnations.
    pub(super) fn log(&self, node: &str) -> PathBuf {
        self.0.join(format!("{node}.log"))
    }

    /// Returns the folder that all members share.
    pub(super) fn shared(&self) -> PathBuf {
        self.0.join("shared")
    }

    /// Returns the folder that a node keeps over restarts.
    pub(super) fn storage(&self, node: &str) -> PathBuf {
        self.0.join(format!("{node}.storage"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_another_program_is_left_unchanged() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("thesis.txt"), "years of work").expect("written");
        assert!(matches!(Folder::take(folder.path()), Err(DriveError::NotOurs(_))));
        assert_eq!(fs::read_dir(folder.path()).expect("still there").count(), 1);
    }

    #[test]
    fn reused_output_folder_loses_only_old_scenarios() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("deep/results");
        let folder = Folder::take(&path).expect("a new one");
        let names = ["n0".to_owned()];
        let first = folder.scenario(SCENARIOS[0].name, &names).expect("made");
        fs::write(first.history(), "older").expect("written");
        let first = folder.scenario(SCENARIOS[0].name, &names).expect("made");
        assert!(!first.history().exists(), "another attempt begins anew");
        fs::write(first.history(), "old").expect("written");
        fs::write(path.join("results.json"), "a report").expect("written");
        assert!(matches!(Folder::take(&path), Err(DriveError::InUse(_))), "two runs at once");
        drop(folder);
        let _folder = Folder::take(&path).expect("an old one");
        assert!(!first.history().exists());
        assert!(path.join("results.json").exists());
    }

    #[test]
    fn folder_that_cannot_be_created_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(matches!(Folder::take(&file.path().join("below")), Err(DriveError::Output { .. })));
    }
}
