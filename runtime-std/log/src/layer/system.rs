//! File access through the operating system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use super::{FileLayer, LayerFile};
use crate::format::BLOCK_BYTES;

/// The name of the file whose lock serves as the folder's lock.
const LOCK: &str = "lock";

/// The kind of access to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Files are only read, and none are created.
    Read,
    /// Files are read and written.
    Write,
}

/// A folder of the operating system.
#[derive(Clone, Debug)]
pub struct SystemFolder {
    path: PathBuf,
    access: Access,
}

/// A file of the operating system.
///
/// Whole blocks go directly from the caller's memory to the disk. Through the kernel's cache they
/// would be copied once more, for the rare case that they are read, and that copy took more time
/// than the disk. The descriptor for direct writes is opened with the first whole blocks, because
/// most files, such as metadata, never have any.
#[derive(Debug)]
pub struct SystemFile {
    file: File,
    direct: Direct,
}

/// The descriptor for writing the file without the kernel's cache.
#[derive(Debug)]
enum Direct {
    /// No whole blocks have been written yet.
    Untried,
    There(File),
    /// The file system does not support direct writes.
    Missing,
}

/// The lock of a folder of the operating system, held until dropped.
///
/// The file is unlocked explicitly, not merely closed: a process that another thread forks has a
/// copy of the descriptor until it executes its program, and that copy would keep the lock.
#[derive(Debug)]
pub struct SystemLock(File);

impl SystemFolder {
    /// Opens a folder for writing. A missing folder is created, and its name in the parent folder
    /// is synced.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if !path.is_dir() {
            fs::create_dir_all(&path)?;
            // Parent folders that had to be created are synced too.
            for above in path.ancestors().skip(1) {
                let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
                match File::open(above).and_then(|folder| folder.sync_all()) {
                    Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                        return Err(error);
                    }
                    // A folder that cannot be read was not created here.
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(Self { path, access: Access::Write })
    }

    /// Opens an existing folder for reading.
    pub fn read_only(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::read_dir(&path)?;
        Ok(Self { path, access: Access::Read })
    }

    fn file(&self, name: &str, options: &OpenOptions) -> io::Result<SystemFile> {
        Ok(SystemFile { file: options.open(self.path.join(name))?, direct: Direct::Untried })
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
            // A name that is not valid text does not belong to a log.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<SystemFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        self.file(name, &options)
    }

    fn open(&self, name: &str) -> io::Result<SystemFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(self.access == Access::Write);
        self.file(name, &options)
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
        // If this fails, closing the file still releases the lock.
        let _ = self.0.unlock();
    }
}

impl LayerFile for SystemFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            // Some file systems cannot allocate space in advance: it is taken when the data is
            // written.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let length = self.length()?.max(bytes);
                self.file.set_len(length)
            }
            done => Ok(done?),
        }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < bytes.len() {
            match self.file.read_at(&mut bytes[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let written = match self.direct_for(bytes, offset) {
            Some(direct) => write_blocks_at(direct, bytes, offset)?,
            None => 0,
        };
        self.file.write_all_at(&bytes[written..], offset + written as u64)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl SystemFile {
    /// Returns the descriptor for whole blocks, if the bytes are whole blocks and the file system
    /// supports it.
    fn direct_for(&mut self, bytes: &[u8], offset: u64) -> Option<&File> {
        if !are_blocks(bytes, offset) {
            return None;
        }
        if matches!(self.direct, Direct::Untried) {
            self.direct = without_cache(&self.file).map_or(Direct::Missing, Direct::There);
        }
        match &self.direct {
            Direct::There(direct) => Some(direct),
            Direct::Untried | Direct::Missing => None,
        }
    }
}

/// Opens the same file without the kernel's cache. It is opened through its descriptor, because its
/// name may have changed or may now belong to another file.
fn without_cache(file: &File) -> Option<File> {
    let flags = i32::try_from(OFlags::DIRECT.bits()).ok()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().write(true).custom_flags(flags).open(path).ok()
}

/// Returns whether all bytes are whole blocks, in memory and in the file.
fn are_blocks(bytes: &[u8], offset: u64) -> bool {
    let block = BLOCK_BYTES as u64;
    bytes.as_ptr().addr().is_multiple_of(BLOCK_BYTES)
        && bytes.len().is_multiple_of(BLOCK_BYTES)
        && offset.is_multiple_of(block)
}

/// Writes as many whole blocks as possible past the kernel's cache. Returns the number of bytes
/// written.
fn write_blocks_at(direct: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match direct.write_at(&bytes[written..], offset + written as u64) {
            // The rest is not whole blocks, or the disk has larger blocks.
            Ok(count) if count < BLOCK_BYTES || !count.is_multiple_of(BLOCK_BYTES) => {
                return Ok(written + count);
            }
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(written),
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Blocks;

    #[test]
    fn written_bytes_are_read_with_either_cache_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let layer = SystemFolder::create(folder.path()).expect("it is there");
        let mut file = layer.create("file").expect("it is made");
        let blocks = |fill: u8| {
            let mut blocks = Blocks::default();
            blocks.resize(2 * BLOCK_BYTES, fill);
            blocks
        };
        let block = BLOCK_BYTES as u64;
        for is_direct in [true, false] {
            if !is_direct {
                file.direct = Direct::Missing;
            }
            let fill = 1 + u8::from(is_direct);
            file.write_at(&blocks(fill), 0).expect("whole blocks");
            file.write_at(&blocks(fill + 10)[1..], block + 1).expect("not their beginning");
            file.write_at(&[fill + 20; 3], 5).expect("a few bytes");
            file.write_at(&blocks(fill + 30)[..BLOCK_BYTES], 3 * block + 7).expect("not there");
            file.sync().expect("it is synced");
            let mut expected = blocks(fill).to_vec();
            expected.resize(4 * BLOCK_BYTES + 7, 0);
            expected[BLOCK_BYTES + 1..3 * BLOCK_BYTES].fill(fill + 10);
            expected[5..8].fill(fill + 20);
            expected[3 * BLOCK_BYTES + 7..].fill(fill + 30);
            let mut read = vec![0; 5 * BLOCK_BYTES];
            let count = layer.open("file").expect("it is there").read_at(&mut read, 0);
            read.truncate(count.expect("it is read"));
            assert!(read == expected, "direct: {is_direct}");
        }
    }

    #[test]
    fn direct_descriptor_is_opened_at_first_block_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let layer = SystemFolder::create(folder.path()).expect("it is there");
        let mut file = layer.create("part").expect("it is made");
        file.write_at(&[1; 100], 0).expect("a few bytes");
        assert!(matches!(file.direct, Direct::Untried));
        layer.rename("part", "whole").expect("it is there");
        let other = layer.create("part").expect("the name is free");
        let mut block = Blocks::default();
        block.resize(BLOCK_BYTES, 2);
        file.write_at(&block, 0).expect("a whole block");
        assert!(!matches!(file.direct, Direct::Untried));
        let mut read = vec![0; BLOCK_BYTES];
        file.read_at(&mut read, 0).expect("it is read");
        assert!(read == *block);
        assert_eq!(other.length().expect("it is there"), 0);
    }

    #[test]
    fn dropped_log_lock_is_released_despite_copied_descriptor() {
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
