//! The file operations of a log, as traits, so that tests can substitute another disk.
//!
//! # Requirements
//! - Data for which [`LayerFile::sync`] has returned survives a loss of power, together with the
//!   file's length.
//! - A created, renamed or removed name is permanent once [`FileLayer::sync_folder`] has returned.
//!   Before that, a loss of power may undo any of these changes while keeping later ones.
//! - Any part of an unsynced write may be on the disk, with the granularity of a sector.

mod system;

use std::fmt;
use std::io;
use std::path::Path;

pub use system::{Access, SystemFile, SystemFolder, SystemLock};

/// A folder of files that belongs to one log.
pub trait FileLayer: Send + Sync {
    /// An open file in the folder.
    type File: LayerFile + fmt::Debug;
    /// The folder's lock, released when dropped.
    type Lock: Send + fmt::Debug;

    /// Returns the folder's path, for use in messages.
    fn path(&self) -> &Path;
    /// Returns the names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Creates an empty file. Fails if the name is taken.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Opens an existing file.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Renames a file, replacing any file that has the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file's name.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all changes to names durable.
    fn sync_folder(&self) -> io::Result<()>;
    /// Takes the folder's lock. Fails with `WouldBlock` if another process holds it.
    fn lock(&self) -> io::Result<Self::Lock>;
}

/// A file of a layer.
pub trait LayerFile: Send {
    /// Returns the file's length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Extends the file to at least `bytes` bytes, and allocates the disk space. New bytes read as
    /// zeros.
    fn allocate(&mut self, bytes: u64) -> io::Result<()>;
    /// Reads until the buffer is full or the file ends. Returns the number of bytes read.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the written data and the file's length durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// The maximum length of a file, in bytes. A damaged file may have any length.
const READ_MAX: usize = 1 << 36;

/// Reads a whole file. A missing file reads as empty.
pub(crate) fn read_whole<L: FileLayer>(layer: &L, name: &str) -> io::Result<Vec<u8>> {
    let file = match layer.open(name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
    if length > READ_MAX {
        let why = format!("its {length} bytes are too many; if it is damaged, move it away");
        return Err(io::Error::other(why));
    }
    let mut bytes = vec![0; length];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

impl<L: FileLayer> FileLayer for std::sync::Arc<L> {
    type File = L::File;
    type Lock = L::Lock;

    fn path(&self) -> &Path {
        (**self).path()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        (**self).list()
    }

    fn create(&self, name: &str) -> io::Result<Self::File> {
        (**self).create(name)
    }

    fn open(&self, name: &str) -> io::Result<Self::File> {
        (**self).open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        (**self).rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        (**self).remove(name)
    }

    fn sync_folder(&self) -> io::Result<()> {
        (**self).sync_folder()
    }

    fn lock(&self) -> io::Result<Self::Lock> {
        (**self).lock()
    }
}
