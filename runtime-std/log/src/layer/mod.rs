//! The file operations of a log, as traits, so that tests can put another disk in place of this
//! one.
//!
//! # What a layer must keep
//! - What [`LayerFile::sync`] has returned for outlives a loss of power, with the file's length.
//! - A name that was created, renamed or removed is so for good once [`FileLayer::sync_folder`] has
//!   returned. Before that, a loss of power may undo any of these steps, and keep later ones.
//! - A write that was not synced may be there in any part, sector by sector.

mod system;

use std::fmt;
use std::io;
use std::path::Path;

pub use system::{Access, SystemFile, SystemFolder, SystemLock};

/// A folder of files, which one log has for itself.
pub trait FileLayer: Send + Sync {
    /// An open file of it.
    type File: LayerFile + fmt::Debug;
    /// What holds the folder's lock; dropping it gives the lock back.
    type Lock: Send + fmt::Debug;

    /// Where the folder is, for messages.
    fn path(&self) -> &Path;
    /// The names of its files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// A new file, which is empty. Fails if the name is taken.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// A file that is there.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Gives a file another name, which it takes from whatever had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Takes a file's name away.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all that was done to names durable.
    fn sync_folder(&self) -> io::Result<()>;
    /// Takes the folder's lock; `WouldBlock` if another process has it.
    fn lock(&self) -> io::Result<Self::Lock>;
}

/// A file of a layer.
pub trait LayerFile: Send {
    /// How many bytes it has.
    fn length(&self) -> io::Result<u64>;
    /// Makes it at least so long, and takes the space on the disk. What is new reads as zeros.
    fn allocate(&mut self, bytes: u64) -> io::Result<()>;
    /// Reads until the buffer is full or the file ends. Gives how much that is.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of it.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes what was written, and the file's length, durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// Reads a whole file. A file that is not there has no bytes.
pub(crate) fn read_whole<L: FileLayer>(layer: &L, name: &str) -> io::Result<Vec<u8>> {
    let file = match layer.open(name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
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
