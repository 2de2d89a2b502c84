//! A member's own files: how they are made, and how they go.
//!
//! Its base file, whose lock is its life; its bell; where membership changes, a row file a view;
//! and its block memory.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, openat, renameat};
use rustix::io::Errno;
use tramontane_core::ids::{NodeId, ViewId};

use super::error::Error;
use super::folder::{Folder, Patience};
use super::header::{HEADER_BYTES, Header};
use super::map::{Access, Map};
use super::root::{GroupName, Root};
use super::space::{BELL_BYTES, PAGE, allocate, check_space, no_space};

/// What a file of ours is made with: never over one that is there, nor through a link.
const CREATE_FLAGS: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The names of a member's files.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) row: CString,
    pub(super) bell: CString,
    /// Its control socket, which somebody else makes.
    pub(super) door: CString,
    making: CString,
}

impl Names {
    pub(super) fn of(id: NodeId) -> Self {
        let name = |kind: &str| file_name(format!("{kind}-{id}"));
        Self { row: name("row"), bell: name("bell"), door: name("door"), making: name(".new") }
    }

    /// The row of a view. The layout's digest is in it, since a view's list of members may change
    /// until it is decided.
    pub(super) fn view_row(id: NodeId, view: ViewId, digest: u64) -> CString {
        file_name(format!("row-{id}{}", Self::view_ending(view, digest)))
    }

    /// A block memory: the number that no other one of this process ever has.
    pub(super) fn block(id: NodeId, serial: u64) -> CString {
        file_name(format!("block-{id}.{serial}"))
    }

    /// What the names of all members' rows of a view end with.
    pub(super) fn view_ending(view: ViewId, digest: u64) -> String {
        format!(".{}.{digest:016x}", view.0)
    }
}

fn file_name(text: String) -> CString {
    // Digits hold no zero byte.
    CString::new(text).unwrap_or_default()
}

/// A member's own files, and its lock. Their names go when this is dropped.
#[derive(Debug)]
pub(super) struct OwnFiles {
    pub(super) folder: Arc<Folder>,
    names: Names,
    /// The base file. Holds the lock that says that this member lives.
    row_file: OwnedFd,
    /// Names of the rows of views that have not ended, and of block memory.
    others: Vec<CString>,
}

impl OwnFiles {
    /// Takes the member's place in the group: an empty row file, locked, and an empty bell file.
    ///
    /// `needed` is what the whole group takes; whether it is to be had is checked before anything
    /// is made.
    pub(super) fn claim(
        root: &Root,
        group: &GroupName,
        id: NodeId,
        needed: u64,
        patience: &Patience<'_>,
    ) -> Result<Self, Error> {
        let names = Names::of(id);
        let (folder, row_file) =
            Folder::enter(root, group, patience, |folder| take_place(folder, id, &names, needed))?;
        Ok(Self { folder: Arc::new(folder), names, row_file, others: Vec::new() })
    }

    /// Allocates and maps both files. Takes a while for a large row, and holds no lock of the
    /// folder.
    pub(super) fn map(
        &self,
        row_file_bytes: usize,
        patience: &Patience<'_>,
    ) -> Result<(Arc<Map>, Arc<Map>), Error> {
        let path = self.folder.path();
        let failed = |errno| Error::from_errno("cannot map a file of", path, errno);
        let bell_file = open_bell(&self.folder, &self.names).map_err(failed)?;
        allocate(&self.folder, &bell_file, BELL_BYTES, patience)?;
        allocate(&self.folder, &self.row_file, row_file_bytes, patience)?;
        let row = Map::new(self.row_file.as_fd(), row_file_bytes, Access::Write).map_err(failed)?;
        let bell = Map::new(bell_file.as_fd(), BELL_BYTES, Access::Write).map_err(failed)?;
        Ok((Arc::new(row), Arc::new(bell)))
    }

    /// Makes an empty file for a view's row, or block memory. Without the folder's lock: the base
    /// file's says whose it is.
    pub(super) fn make_other(&mut self, name: &CStr) -> rustix::io::Result<OwnedFd> {
        let file = openat(self.folder.as_fd(), name, CREATE_FLAGS, Mode::RUSR | Mode::WUSR)?;
        self.others.push(name.to_owned());
        Ok(file)
    }

    /// Removes such a file, if it is there.
    pub(super) fn remove_other(&mut self, name: &CStr) {
        if let Some(place) = self.others.iter().position(|other| other.as_c_str() == name) {
            self.folder.remove(&self.others.swap_remove(place));
        }
    }
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        // The names are ours as long as the lock is: nobody removes a live member's files.
        for other in &self.others {
            self.folder.remove(other);
        }
        self.folder.remove(&self.names.door);
        self.folder.remove(&self.names.bell);
        self.folder.remove(&self.names.row);
        // Without this, a child that was forked meanwhile would keep the lock, and this member
        // would seem to live.
        if let Err(error) = flock(&self.row_file, FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot unlock the row file");
        }
        self.folder.clear();
    }
}

/// With the folder's lock held: clears away the dead, refuses a duplicate, and makes both files.
fn take_place(folder: &Folder, id: NodeId, names: &Names, needed: u64) -> Result<OwnedFd, Error> {
    let path = folder.path();
    let failed = |action| move |errno| Error::from_errno(action, path, errno);
    folder.remove_the_dead().map_err(failed("cannot clear"))?;
    if let Some(row) = folder.open_row(&names.row).map_err(failed("cannot look into"))? {
        return Err(Error::DuplicateId {
            id,
            group: folder.name().to_string(),
            pid: owner_of(&row),
        });
    }
    check_space(folder, needed, |_| true)?;

    let create = |name| openat(folder.as_fd(), name, CREATE_FLAGS, Mode::RUSR | Mode::WUSR);
    let made = (|| {
        drop(create(&names.bell)?);
        // Under another name until it is locked: a peer that looks for the row without the folder's
        // lock must never find it without its owner's.
        let row = create(&names.making)?;
        flock(&row, FlockOperation::NonBlockingLockExclusive)?;
        renameat(folder.as_fd(), &names.making, folder.as_fd(), &names.row)?;
        Ok(row)
    })();
    made.map_err(|errno| {
        folder.remove(&names.bell);
        folder.remove(&names.making);
        match errno {
            Errno::NOSPC => no_space(folder, PAGE),
            other => Error::from_errno("cannot create a file in", path, other),
        }
    })
}

/// Which process owns a live row; zero while it has not said so yet.
fn owner_of(row: &OwnedFd) -> u64 {
    if !holds(row, HEADER_BYTES) {
        return 0;
    }
    Map::new(row.as_fd(), HEADER_BYTES, Access::Read).map_or(0, |map| Header::new(&map).pid())
}

/// Whether a file is as long as this: only then can all of it be touched.
pub(super) fn holds(file: &OwnedFd, bytes: usize) -> bool {
    fstat(file).is_ok_and(|stat| usize::try_from(stat.st_size).is_ok_and(|size| size >= bytes))
}

pub(super) fn open_bell(folder: &Folder, names: &Names) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder.as_fd(), &names.bell, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::mounted::Mounted;

    /// What the check beforehand cannot see: that others allocate at the same time.
    #[test]
    fn an_allocation_that_fails_after_the_check_is_an_error_and_leaves_nothing() {
        let Some(place) = Mounted::new("files") else {
            println!("skipped: this user may not mount a small file system");
            return;
        };
        let (root, group) = (Root::under(place.path()), GroupName::new("late").expect("a name"));
        let never = AtomicBool::new(false);
        let patience = Patience { until: Instant::now() + Duration::from_secs(9), cancel: &never };
        let files =
            OwnFiles::claim(&root, &group, NodeId(1), 0, &patience).expect("names are cheap");
        let error = files.map(2 << 20, &patience).expect_err("two of one MiB");
        assert!(
            matches!(
                error,
                Error::NoSpace { needed, free, .. } if needed == 2 << 20 && free < 1 << 20
            ),
            "{error}"
        );
        drop(files);
        assert!(!root.path().exists());
    }
}
