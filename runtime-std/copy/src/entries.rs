//! The limits that a receiver imposes on an archive. Although the sender is a member, it may send
//! entries that no correct member packs.
//!
//! # Invariants
//! - Only files, directories and links are accepted, each under a name in the manifest.
//! - The headers between the contents of two files (names and lists of holes) take at most
//!   [`HEADERS_MAX`] bytes of memory.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use tar::{EntryType, Header};

use tramontane_local::exit::Failure;

/// Maximum number of bytes from the end of one file's content to the beginning of the next. A list
/// of holes may itself be long: see [`EXTENTS_MAX`](super::archive::EXTENTS_MAX).
pub(super) const HEADERS_MAX: u64 = 4 << 20;

/// Length, in bytes, of the longest path that the system accepts, and of the longest link target.
const PATH_MAX: usize = 4096;

/// An archive from which at most [`HEADERS_MAX`] bytes are read at a time outside file contents.
pub(super) struct Rationed<'c, R> {
    archive: R,
    left: &'c Cell<u64>,
}

impl<'c, R> Rationed<'c, R> {
    /// Wraps an archive. `left` is the number of bytes that may still be read.
    pub(super) fn new(archive: R, left: &'c Cell<u64>) -> Self {
        Self { archive, left }
    }
}

impl<R: Read> Read for Rationed<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.left.get()).unwrap_or(usize::MAX);
        if left == 0 && !into.is_empty() {
            let what = "the copy has a name, or a list of holes, that is too long";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let wanted = into.len().min(left);
        let count = self.archive.read(&mut into[..wanted])?;
        self.left.set(self.left.get().saturating_sub(count as u64));
        Ok(count)
    }
}

/// Returns the location of an entry inside the folder into which the archive is unpacked. Fails
/// unless the entry is below one of `names`.
pub(super) fn place_of(
    entry: &tar::Entry<'_, impl Read>,
    names: &[String],
) -> io::Result<Result<PathBuf, Failure>> {
    let path = entry.path()?;
    let link = entry.link_name_bytes();
    if path.as_os_str().len() >= PATH_MAX || link.is_some_and(|link| link.len() >= PATH_MAX) {
        return Ok(Err(refused("a name that is too long for any system")));
    }
    Ok(judge(&path, entry.header(), names).map(|()| path.into_owned()))
}

fn judge(path: &Path, header: &Header, names: &[String]) -> Result<(), Failure> {
    // Entries that no sender packs are refused: hard links, devices, pipes.
    let is_kept = matches!(
        header.entry_type(),
        EntryType::Regular | EntryType::GNUSparse | EntryType::Directory | EntryType::Symlink
    );
    if !is_kept {
        return Err(refused("an entry that is neither a file, a directory nor a link"));
    }
    let mut parts = path.components();
    let is_named = |part: &OsStr| names.iter().any(|name| part == name.as_str());
    let is_below = matches!(parts.next(), Some(Component::Normal(first)) if is_named(first))
        && parts.all(|part| matches!(part, Component::Normal(_)));
    if is_below { Ok(()) } else { Err(refused("an entry outside its destination")) }
}

fn refused(what: &str) -> Failure {
    let what = format_args!("the copy contains {what}; nothing of it is kept");
    Failure::input(what, "run the same trusted program on the sending node")
}
