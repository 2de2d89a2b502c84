//! The directories of an archive. Each is writable until its contents are complete. Its final
//! permissions and times are set afterwards. A top-level directory stays writable until it has been
//! moved to its destination, because a user cannot move a directory without write permission.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, openat};
use tar::Header;

/// Permissions that an owner needs to fill a directory and to move it.
pub(super) const WRITABLE: u32 = 0o700;

/// Permission bits that depend on the owner: a program that runs as its owner would run as the user
/// that copied it. They are cleared on arrival, because owners are not kept.
pub(super) const OF_THE_OWNER: u32 = 0o7000;

/// The directories that contain the current entry, and the top-level directories that are complete.
#[derive(Debug, Default)]
pub(super) struct Directories {
    /// Each directory is inside the previous one, because a directory's contents follow it directly
    /// in an archive.
    open: Vec<Directory>,
    top: Vec<Directory>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Directory {
    /// Path relative to the folder in which the archive is unpacked.
    path: PathBuf,
    mode: u32,
    modified_s: u64,
}

impl Directories {
    /// Completes the directories that do not contain the next entry, whose path is `path`.
    pub(super) fn leave_for(&mut self, unpacked: &Path, path: &Path) -> io::Result<()> {
        while let Some(last) = self.open.pop_if(|last| !path.starts_with(&last.path)) {
            self.leave(unpacked, last)?;
        }
        Ok(())
    }

    /// Completes all directories after the last entry.
    pub(super) fn leave_all(&mut self, unpacked: &Path) -> io::Result<()> {
        while let Some(last) = self.open.pop() {
            self.leave(unpacked, last)?;
        }
        Ok(())
    }

    fn leave(&mut self, unpacked: &Path, directory: Directory) -> io::Result<()> {
        if directory.path.components().nth(1).is_none() {
            self.top.push(directory);
            return Ok(());
        }
        directory.finish(unpacked).map(drop)
    }

    /// Adds a directory that has just been unpacked.
    pub(super) fn enter(
        &mut self,
        unpacked: &Path,
        path: PathBuf,
        header: &Header,
    ) -> io::Result<()> {
        let directory =
            Directory { path, mode: header.mode()? & !OF_THE_OWNER, modified_s: header.mtime()? };
        directory.allow(unpacked)?;
        self.open.push(directory);
        Ok(())
    }

    /// Sets the permissions and times of the top-level directories at their destination.
    pub(super) fn finish_top(&self, place: &Path) -> io::Result<()> {
        self.top.iter().try_for_each(|directory| directory.finish(place)?.sync_all())
    }

    /// Makes the top-level directories movable again.
    pub(super) fn allow_top(&self, place: &Path) {
        for directory in &self.top {
            // If the directory cannot be moved, the move reports the error.
            let _ = directory.allow(place);
        }
    }
}

impl Directory {
    fn allow(&self, below: &Path) -> io::Result<()> {
        let path = below.join(&self.path);
        // A link with that name is not followed.
        if !fs::symlink_metadata(&path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        fs::set_permissions(&path, Permissions::from_mode(self.mode | WRITABLE))
    }

    fn finish(&self, below: &Path) -> io::Result<File> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(CWD, below.join(&self.path), flags, Mode::empty())?;
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec {
                tv_sec: self.modified_s.try_into().unwrap_or(0),
                tv_nsec: 0,
            },
        };
        futimens(&directory, &times)?;
        fchmod(&directory, Mode::from_raw_mode(self.mode))?;
        Ok(directory.into())
    }
}

/// Removes a directory with all its contents, even those without write permission.
pub(super) fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        removed => return removed,
    }
    let mut left = vec![path.to_path_buf()];
    while let Some(directory) = left.pop() {
        fs::set_permissions(&directory, Permissions::from_mode(WRITABLE))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::super::archive;
    use super::super::messages::Manifest;
    use super::super::place::TargetDirectory;
    use super::*;

    const LONG_AGO_S: i64 = 1_000_000_000;

    /// Runs a function as a user to whom permissions apply, unlike root. Only this thread is
    /// affected.
    fn without_privilege<T: Send>(run: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let run = move || {
                let mut sets = capabilities(None).expect("a thread has some, or none");
                sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
                set_capabilities(None, sets).expect("one may have fewer");
                run()
            };
            scope.spawn(run).join().expect("it does not panic")
        })
    }

    /// Returns a tree as an archive. Its directories can be read, but not written to.
    fn archived(folder: &Path) -> Vec<u8> {
        let paths = ["tree", "tree/within", "tree/within/file", "tree/last"];
        fs::create_dir_all(folder.join("tree/within")).expect("a tree");
        for file in &paths[2..] {
            fs::write(folder.join(file), b"content").expect("a file");
        }
        let mut archive = tar::Builder::new(Vec::new());
        for path in ["tree/within", "tree"] {
            let path = folder.join(path);
            let long_ago = Timespec { tv_sec: LONG_AGO_S, tv_nsec: 0 };
            let directory = File::open(&path).expect("it is there");
            futimens(
                &directory,
                &Timestamps { last_access: long_ago, last_modification: long_ago },
            )
            .expect("times");
            fs::set_permissions(&path, Permissions::from_mode(0o7555)).expect("its owner may");
        }
        for path in paths {
            let metadata = fs::symlink_metadata(folder.join(path)).expect("it is there");
            archive::append(&mut archive, &folder.join(path), Path::new(path), &metadata)
                .expect("an entry");
        }
        archive.into_inner().expect("an archive")
    }

    fn unpack(archive: &[u8], to: &Path) -> TargetDirectory {
        let mut place = TargetDirectory::take(to).expect("a place");
        place
            .expect(&Manifest { names: vec!["tree".into()], bytes: 14 })
            .expect("nothing is there");
        assert_eq!(place.unpack(archive).expect("an archive"), 2, "files");
        place
    }

    #[test]
    fn read_only_directories_arrive_unchanged() {
        let (source, to) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let archive = archived(source.path());
        without_privilege(|| {
            unpack(&archive, to.path()).settle().expect("it is moved");
            for path in ["tree", "tree/within"] {
                let metadata = fs::metadata(to.path().join(path)).expect("it is there");
                assert_eq!(metadata.mode() & 0o7777, 0o555, "{path}");
                assert_eq!(metadata.mtime(), LONG_AGO_S, "{path}");
            }
            assert_eq!(fs::read(to.path().join("tree/within/file")).expect("a file"), b"content");
        });
        remove_all(source.path()).expect("whatever may be written to");
        remove_all(to.path()).expect("whatever may be written to");
    }

    #[test]
    fn abandoned_read_only_directories_are_removed() {
        let (source, to) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let archive = archived(source.path());
        without_privilege(|| {
            drop(unpack(&archive, to.path()));
            assert_eq!(fs::read_dir(to.path()).expect("a folder").count(), 0);
            // Another user has created this file in the meantime. It must not be replaced.
            let place = unpack(&archive, to.path());
            fs::create_dir(to.path().join("tree")).expect("a folder");
            assert!(place.settle().is_err());
            drop(place);
            assert_eq!(fs::read_dir(to.path().join("tree")).expect("a folder").count(), 0);
        });
        remove_all(source.path()).expect("whatever may be written to");
    }
}
