//! The operating system's files.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::{FileLayer, LayerFile};

/// The name of the file whose lock is the folder's.
const LOCK: &str = "lock";

/// What may be done to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Files are read alone, and nothing is created.
    Read,
    /// Everything.
    Write,
}

/// A folder of the operating system.
#[derive(Clone, Debug)]
pub struct SystemFolder {
    path: PathBuf,
    access: Access,
}

/// A file of the operating system.
#[derive(Debug)]
pub struct SystemFile(File);

/// The lock of a folder of the operating system, held until it is dropped.
///
/// It is unlocked and not merely closed: a process that another thread forks has a copy of the
/// descriptor until it executes its program, and the copy would keep the lock.
#[derive(Debug)]
pub struct SystemLock(File);

impl SystemFolder {
    /// A folder to write to. It is made if it is not there, and its name in the folder above is
    /// synced.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if !path.is_dir() {
            fs::create_dir_all(&path)?;
            // Folders above that were made too are synced likewise.
            for above in path.ancestors().skip(1) {
                let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
                match File::open(above).and_then(|folder| folder.sync_all()) {
                    Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                        return Err(error);
                    }
                    // What may not be read was not made here.
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(Self { path, access: Access::Write })
    }

    /// A folder that is there, to read.
    pub fn read_only(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::read_dir(&path)?;
        Ok(Self { path, access: Access::Read })
    }
}

impl FileLayer for SystemFolder {
    type File = SystemFile;
    type Lock = SystemLock;

    fn path(&self) -> &Path {
        &self.path
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is no text is none of a log's.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<SystemFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        Ok(SystemFile(options.open(self.path.join(name))?))
    }

    fn open(&self, name: &str) -> io::Result<SystemFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(self.access == Access::Write);
        Ok(SystemFile(options.open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn lock(&self) -> io::Result<SystemLock> {
        let path = self.path.join(LOCK);
        let file = match self.access {
            Access::Read => File::open(path)?,
            Access::Write => {
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?
            }
        };
        match file.try_lock() {
            Ok(()) => Ok(SystemLock(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for SystemLock {
    fn drop(&mut self) {
        // If this fails, closing the file is what is left to do.
        let _ = self.0.unlock();
    }
}

impl LayerFile for SystemFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, bytes) {
            // A file system that cannot: the space is taken when it is written.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let length = self.length()?.max(bytes);
                self.0.set_len(length)
            }
            done => Ok(done?),
        }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < bytes.len() {
            match self.0.read_at(&mut bytes[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_lock_is_free_though_a_copy_of_its_descriptor_is_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let layer = SystemFolder::create(folder.path()).expect("it is there");
        let lock = layer.lock().expect("nobody has it");
        let copy = lock.0.try_clone().expect("what a forked process has");
        layer.lock().expect_err("it is held");
        drop(lock);
        layer.lock().expect("it is free");
        drop(copy);
    }
}
