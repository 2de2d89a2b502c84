//! The destination directory: entries are first unpacked next to their final place.

use std::cell::Cell;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::directories::{self, Directories};
use super::entries::{self, HEADERS_MAX, Rationed};
use super::messages::Manifest;
use tramontane_local::exit::{Failure, Status};

/// Name of the folder inside the destination directory in which a receiver unpacks.
pub(super) const UNPACKED: &str = ".tramontane-copy";

/// Interval between notices of a receiver that is waiting for its disk.
const SYNC_PAUSE: Duration = Duration::from_secs(1);

/// A destination directory. Everything that has not been moved to its final place is removed on
/// drop.
#[derive(Debug)]
pub(super) struct TargetDirectory {
    directory: PathBuf,
    unpacked: PathBuf,
    names: Vec<String>,
    directories: Directories,
}

impl TargetDirectory {
    /// Claims a directory, which must exist and contain no remains of an earlier copy.
    pub(super) fn take(directory: &Path) -> Result<Self, Failure> {
        let unpacked = directory.join(UNPACKED);
        // No other user can open the folder. Entries get their own permissions later, when they are
        // moved.
        match DirBuilder::new().mode(directories::WRITABLE).create(&unpacked) {
            Ok(()) => {
                let (names, directories) = (Vec::new(), Directories::default());
                Ok(Self { directory: directory.to_path_buf(), unpacked, names, directories })
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let what = format_args!(
                    "{} exists: another copy is running, or was interrupted and cannot be resumed",
                    unpacked.display()
                );
                Err(Failure::input(what, "if no copy is running, remove it and copy again"))
            }
            // The kernel's own file systems also report this error for files that cannot be created
            // there.
            Err(_) if !directory.is_dir() => {
                let what = format_args!("there is no directory {}", directory.display());
                Err(Failure::usage(what, "create it, or give a different --to"))
            }
            Err(error) => Err(cannot_write(directory, &error)),
        }
    }

    /// Returns the destination directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Refuses a manifest that would replace an existing file.
    pub(super) fn expect(&mut self, manifest: &Manifest) -> Result<(), Failure> {
        for (number, name) in manifest.names.iter().enumerate() {
            // Each must be a plain name and not a path, and each must appear once.
            let is_name = Path::new(name).file_name().is_some_and(|last| last == name.as_str());
            let is_again = manifest.names[..number].contains(name);
            if !is_name || is_again || name == UNPACKED || name.contains('\0') {
                let what = format_args!("{name:?} is not a valid name");
                return Err(Failure::input(what, "rename it at the source"));
            }
            self.refuse_existing(name)?;
        }
        self.names.clone_from(&manifest.names);
        Ok(())
    }

    fn refuse_existing(&self, name: &str) -> Result<(), Failure> {
        match fs::symlink_metadata(self.directory.join(name)) {
            Ok(_) => Err(self.is_there(name)),
            Err(_) => Ok(()),
        }
    }

    fn is_there(&self, name: &str) -> Failure {
        let path = self.directory.join(name);
        let what = format_args!("{} exists already", path.display());
        Failure::input(what, "remove it, or copy to another directory")
    }

    /// Unpacks an archive next to the final place of its entries. Returns the number of files in
    /// it, including links.
    pub(super) fn unpack(&mut self, archive: impl Read) -> Result<u64, Failure> {
        let left = Cell::new(HEADERS_MAX);
        let mut archive = tar::Archive::new(Rationed::new(archive, &left));
        archive.set_preserve_permissions(true);
        archive.set_preserve_mtime(true);
        archive.set_mask(directories::OF_THE_OWNER);
        let mut files = 0;
        for entry in archive.entries().map_err(|error| self.unpackable(&error))? {
            let entry = entry.map_err(|error| self.unpackable(&error))?;
            // Links and files with holes count as files too.
            files += u64::from(!entry.header().entry_type().is_dir());
            let path = entries::place_of(&entry, &self.names)
                .map_err(|error| self.unpackable(&error))??;
            // The content may be of any length.
            left.set(u64::MAX);
            self.unpack_entry(entry, path).map_err(|error| self.unpackable(&error))?;
            left.set(HEADERS_MAX);
        }
        self.directories.leave_all(&self.unpacked).map_err(|error| self.unpackable(&error))?;
        Ok(files)
    }

    /// Unpacks an entry at a path inside the folder into which the archive is unpacked.
    fn unpack_entry(
        &mut self,
        mut entry: tar::Entry<'_, impl Read>,
        path: PathBuf,
    ) -> io::Result<()> {
        self.directories.leave_for(&self.unpacked, &path)?;
        if !entry.unpack_in(&self.unpacked)? {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if entry.header().entry_type().is_dir() {
            self.directories.enter(&self.unpacked, path, entry.header())?;
        }
        // Reads the rest of the content here rather than between entries, where less may be read.
        io::copy(&mut entry, &mut io::sink()).map(drop)
    }

    /// Converts an error in the middle of an archive to a failure of the local file system or of
    /// the stream.
    fn unpackable(&self, error: &io::Error) -> Failure {
        let cause = innermost(error);
        if cause.kind() == io::ErrorKind::ConnectionAborted {
            return Failure::peer_lost(cause, "copy again");
        }
        cannot_write(&self.directory, cause)
    }

    /// Syncs the unpacked files to disk, in a separate thread because this may take minutes. Calls
    /// `go_on` in the meantime, which may end the wait by failing.
    pub(super) fn sync(
        &self,
        mut go_on: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let cannot = |error: io::Error| cannot_write(&self.directory, &error);
        let unpacked = File::open(&self.unpacked).map_err(cannot)?;
        let (done, is_done) = mpsc::channel();
        let sync = move || {
            // If the wait was cancelled, the result is not needed.
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

    /// Moves everything to its final place, or nothing.
    pub(super) fn settle(&self) -> Result<(), Failure> {
        self.move_all_in()?;
        // A name that is not on the disk would be lost in a power failure, and its file with it.
        let finished = self.directories.finish_top(&self.directory);
        let synced = finished.and_then(|()| File::open(&self.directory)?.sync_all());
        synced.map_err(|error| {
            self.directories.allow_top(&self.directory);
            self.names.iter().for_each(|name| self.move_back(name));
            cannot_write(&self.directory, &error)
        })
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
        match rename_to_nothing(&self.unpacked.join(name), &self.directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(self.is_there(name)),
            renamed => renamed.map_err(|error| cannot_write(&self.directory, &error)),
        }
    }

    fn move_back(&self, name: &str) {
        if let Err(error) = rename_to_nothing(&self.directory.join(name), &self.unpacked.join(name))
        {
            tracing::warn!(name, %error, "cannot move an entry back");
        }
    }
}

/// Renames a file without replacing an existing one.
fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system cannot do that. The name is checked first instead, which leaves a short
        // gap.
        Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(to).is_err() => {
            fs::rename(from, to)
        }
        Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::AlreadyExists.into()),
        renamed => Ok(renamed?),
    }
}

impl Drop for TargetDirectory {
    fn drop(&mut self) {
        if let Err(error) = directories::remove_all(&self.unpacked) {
            tracing::warn!(path = %self.unpacked.display(), %error, "cannot remove the unpacked files");
        }
    }
}

/// Returns the system's own error, which the archive reader wraps several times.
fn innermost(error: &io::Error) -> &io::Error {
    let mut innermost = error;
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        innermost = source.downcast_ref().unwrap_or(innermost);
        next = source.source();
    }
    innermost
}

fn cannot_write(directory: &Path, error: &io::Error) -> Failure {
    Failure::system(format_args!("cannot write to {}", directory.display()), error)
}
