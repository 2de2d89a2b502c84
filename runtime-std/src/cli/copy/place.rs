//! The directory that is copied into: everything is unpacked beside its place first.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::talk::Manifest;
use crate::cli::exit::{Failure, Status};

/// Where a receiver unpacks, inside the directory that is copied into.
pub(super) const UNPACKED: &str = ".tramontane-copy";

/// Between two words of a receiver that waits for its disk.
const SYNC_PAUSE: Duration = Duration::from_secs(1);

/// A directory that is copied into. What was not moved into place goes when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    directory: PathBuf,
    unpacked: PathBuf,
    names: Vec<String>,
}

impl Place {
    /// Takes a directory, which must be there and have nothing of an earlier copy.
    pub(super) fn take(directory: &Path) -> Result<Self, Failure> {
        let unpacked = directory.join(UNPACKED);
        match fs::create_dir(&unpacked) {
            Ok(()) => Ok(Self { directory: directory.to_path_buf(), unpacked, names: Vec::new() }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let what = format_args!(
                    "{} is there: another copy is under way, or was interrupted, and that cannot be resumed",
                    unpacked.display()
                );
                Err(Failure::new(Status::Input, what, "if none is under way, remove it and copy again"))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                let what = format_args!("there is no directory {}", directory.display());
                Err(Failure::new(Status::Usage, what, "make it, or give another --to"))
            }
            Err(error) => Err(cannot_write(directory, &error)),
        }
    }

    /// What is copied into.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Refuses what would replace something.
    pub(super) fn expect(&mut self, manifest: &Manifest) -> Result<(), Failure> {
        for name in &manifest.names {
            // A name, and not a way to somewhere else.
            let is_name = Path::new(name).file_name().is_some_and(|last| last == name.as_str());
            if !is_name || name == UNPACKED {
                let what = format_args!("nothing can be called {name:?}");
                return Err(Failure::new(Status::Input, what, "rename it where it is copied from"));
            }
            self.refuse_existing(name)?;
        }
        self.names.clone_from(&manifest.names);
        Ok(())
    }

    fn refuse_existing(&self, name: &str) -> Result<(), Failure> {
        let path = self.directory.join(name);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(());
        }
        let what = format_args!("{} is there already", path.display());
        Err(Failure::new(Status::Input, what, "remove it, or copy to another directory"))
    }

    /// Unpacks an archive beside the place. How many files it has.
    pub(super) fn unpack(&self, archive: impl Read) -> Result<u64, Failure> {
        let mut archive = tar::Archive::new(archive);
        archive.set_preserve_permissions(true);
        archive.set_preserve_mtime(true);
        let mut files = 0;
        for entry in archive.entries().map_err(|error| self.unpackable(&error))? {
            let mut entry = entry.map_err(|error| self.unpackable(&error))?;
            let is_inside = entry.unpack_in(&self.unpacked).map_err(|error| self.unpackable(&error))?;
            if !is_inside {
                let what = "the copy has something that would be outside of its place";
                return Err(Failure::new(Status::Input, what, "copy it from where it is not"));
            }
            // One with holes is a file too.
            let kind = entry.header().entry_type();
            files += u64::from(kind.is_file() || kind.is_gnu_sparse());
        }
        Ok(files)
    }

    /// What becomes of an error in the middle of an archive: of the file system here, or of the stream.
    fn unpackable(&self, error: &io::Error) -> Failure {
        let cause = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
        let cause = cause.unwrap_or(error);
        if cause.kind() == io::ErrorKind::ConnectionAborted {
            return Failure::told(Status::PeerLost, cause);
        }
        cannot_write(&self.directory, cause)
    }

    /// Has what was unpacked written to the disk, in a thread of its own: it may take minutes. Calls `go_on` meanwhile,
    /// which may call the wait off.
    pub(super) fn sync(&self, mut go_on: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
        let cannot = |error: io::Error| cannot_write(&self.directory, &error);
        let unpacked = File::open(&self.unpacked).map_err(cannot)?;
        let (done, is_done) = mpsc::channel();
        let sync = move || {
            // Who called the wait off does not hear it.
            let _ = done.send(rustix::fs::syncfs(unpacked));
        };
        std::thread::Builder::new().name("tramontane-sync".into()).spawn(sync).map_err(cannot)?;
        loop {
            match is_done.recv_timeout(SYNC_PAUSE) {
                Ok(synced) => return synced.map_err(|error| cannot(error.into())),
                Err(RecvTimeoutError::Timeout) => go_on()?,
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::silent(Status::Other)),
            }
        }
    }

    /// Moves everything into place, or nothing.
    pub(super) fn settle(&self) -> Result<(), Failure> {
        let settled = self.move_all_in();
        if settled.is_ok() {
            // A name that is not on the disk is lost with the power, and its file with it.
            let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
            if let Err(error) = synced {
                self.names.iter().for_each(|name| self.move_back(name));
                return Err(cannot_write(&self.directory, &error));
            }
        }
        settled
    }

    fn move_all_in(&self) -> Result<(), Failure> {
        for (moved, name) in self.names.iter().enumerate() {
            if let Err(failure) = self.move_in(name) {
                self.names[..moved].iter().for_each(|name| self.move_back(name));
                return Err(failure);
            }
        }
        Ok(())
    }

    fn move_in(&self, name: &str) -> Result<(), Failure> {
        self.refuse_existing(name)?;
        fs::rename(self.unpacked.join(name), self.directory.join(name))
            .map_err(|error| cannot_write(&self.directory, &error))
    }

    fn move_back(&self, name: &str) {
        if let Err(error) = fs::rename(self.directory.join(name), self.unpacked.join(name)) {
            tracing::warn!(name, %error, "what was moved into place cannot be taken back");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.unpacked) {
            tracing::warn!(path = %self.unpacked.display(), %error, "what was unpacked cannot be removed");
        }
    }
}

fn cannot_write(directory: &Path, error: &io::Error) -> Failure {
    Failure::system(format_args!("cannot write to {}", directory.display()), error)
}
