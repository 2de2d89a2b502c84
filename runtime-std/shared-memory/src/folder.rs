//! One group's folder: its lock, the processes that live in it, and what dead ones left.
//!
//! The lock is a `flock` on the folder itself, so there is no lock file to leave behind. It is held
//! for a few system calls at a time, never while memory is allocated, and taken without blocking: a
//! holder that is stopped becomes an error of the others, after their time limit, and not a hang.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::error::Error;
use super::root::{FOLDER_FLAGS, GroupName, Root, check_owner, entries};

/// How long a wait for the lock sleeps between two tries.
const LOCK_RETRY: Duration = Duration::from_millis(1);

/// How long a member that leaves waits for the lock, to clear away what crashed peers left.
const LEAVE_PATIENCE: Duration = Duration::from_millis(200);

/// Until when somebody waits, and what tells it to stop earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'c> {
    /// The last moment.
    pub(super) until: Instant,
    /// Set by another thread, or a signal's handler, to end the wait.
    pub(super) cancel: &'c AtomicBool,
}

impl Patience<'_> {
    /// Fails if the caller was told to stop.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// Whether the owner of a member's file lives: it holds the exclusive lock as long as it does.
///
/// The probe takes a *shared* lock, so that probes do not see each other, and gives it back at
/// once.
pub(super) fn is_live(file: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            flock(file, FlockOperation::Unlock)?;
            Ok(false)
        }
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// The file of the member that a name belongs to, which may be that file itself. Sockets have no
/// lock: they live as long as the member's file beside them.
fn member_of(name: &CStr) -> Option<CString> {
    let name = name.to_bytes();
    let id = [&b"member-"[..], b"memory-", b"door-"]
        .into_iter()
        .find_map(|kind| name.strip_prefix(kind))?;
    CString::new([b"member-", id].concat()).ok()
}

/// Whose files were found in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// Members that live.
    pub(super) living: usize,
    /// Files that were left by dead ones, and are gone now.
    pub(super) removed: usize,
}

/// An open group folder.
#[derive(Debug)]
pub(super) struct Folder {
    root: Root,
    name: GroupName,
    path: PathBuf,
    folder: OwnedFd,
}

impl Folder {
    /// Opens a group's folder if it is there.
    pub(super) fn open(
        root: &Root,
        within: BorrowedFd<'_>,
        name: &GroupName,
    ) -> Result<Option<Self>, Error> {
        let path = root.path().join(name.as_str());
        let folder = match openat(within, name.as_str(), FOLDER_FLAGS, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(Error::from_errno("cannot open", &path, errno)),
        };
        check_owner(folder.as_fd(), &path)?;
        Ok(Some(Self { root: root.clone(), name: name.clone(), path, folder }))
    }

    /// Opens a group's folder, makes it if needed, and does something in it while its lock is held.
    pub(super) fn enter<T>(
        root: &Root,
        name: &GroupName,
        patience: &Patience<'_>,
        act: impl Fn(&Self) -> Result<T, Error>,
    ) -> Result<(Self, T), Error> {
        loop {
            patience.check()?;
            let within = root.open_or_make()?;
            match mkdirat(&within, name.as_str(), Mode::RWXU) {
                // Not there any more: the root was removed, because it was empty, after it was
                // opened.
                Ok(()) | Err(Errno::EXIST | Errno::NOENT) => {}
                Err(errno) => {
                    let path = root.path().join(name.as_str());
                    return Err(Error::from_errno("cannot create", &path, errno));
                }
            }
            let Some(folder) = Self::open(root, within.as_fd(), name)? else { continue };
            folder.lock(patience)?;
            // Whoever removes a folder holds its lock; so one that is there now, stays.
            if folder.is_in_place() {
                let outcome = act(&folder);
                if outcome.is_err() && !folder.is_in_place() && !patience.is_over() {
                    // Somebody who holds no lock removed it.
                    continue;
                }
                if outcome.is_err() {
                    folder.remove_if_empty();
                }
                folder.unlock();
                if outcome.is_err() {
                    root.remove_if_empty();
                }
                return outcome.map(|value| (folder, value));
            }
        }
    }

    /// The folder's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The group's name.
    pub(super) fn name(&self) -> &GroupName {
        &self.name
    }

    /// The open folder, to find files in.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Opens a file to read it, if it is there. Does not wait, whatever has that name.
    pub(super) fn open_file(&self, name: &CStr) -> rustix::io::Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Removes a file of this folder. True if it was there: a member that is just leaving may be
    /// faster.
    pub(super) fn remove(&self, name: &CStr) -> bool {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) => true,
            Err(Errno::NOENT) => false,
            Err(error) => {
                tracing::warn!(folder = %self.path.display(), file = ?name, %error, "cannot remove");
                false
            }
        }
    }

    /// With the lock held: removes every file whose owner is dead.
    ///
    /// A file that is being made has no owner yet; but who makes one holds the lock until it has.
    pub(super) fn remove_the_dead(&self) -> rustix::io::Result<Census> {
        let mut census = Census::default();
        for name in entries(self.as_fd())? {
            if name.to_bytes().starts_with(b".new-") {
                census.removed += usize::from(self.remove(&name));
                continue;
            }
            let Some(member) = member_of(&name) else { continue };
            let lives = match self.open_file(&member)? {
                Some(file) => is_live(file.as_fd())?,
                None => false,
            };
            if lives {
                census.living += usize::from(member == name);
            } else if self.remove(&name) {
                census.removed += 1;
                tracing::info!(
                    folder = %self.path.display(), file = ?name,
                    "removed the file of a process that ended without cleaning up"
                );
            }
        }
        Ok(census)
    }

    /// Removes the folder and what is in it, if nobody lives there and nobody is just moving in or
    /// out. True if there was something of the dead.
    pub(super) fn remove_if_dead(&self) -> bool {
        if !self.try_lock() {
            return false;
        }
        let census = self.remove_the_dead().unwrap_or(Census { living: 1, removed: 0 });
        let gone = census.living == 0 && self.remove_if_empty();
        self.unlock();
        gone && census.removed > 0
    }

    /// For a member that left: removes what crashed peers left behind, and the folder with the last
    /// of them.
    pub(super) fn clear(&self) {
        let never = AtomicBool::new(false);
        if self.lock(&Patience { until: Instant::now() + LEAVE_PATIENCE, cancel: &never }).is_ok() {
            if let Err(error) = self.remove_the_dead() {
                tracing::warn!(folder = %self.path.display(), %error, "cannot look for files of crashed members");
            }
            self.remove_if_empty();
            self.unlock();
        }
        self.root.remove_if_empty();
    }

    /// With the lock held: removes the folder if nothing is in it. True if so.
    ///
    /// Only if the name still means the folder that is locked: it may be another by now, in which
    /// somebody who holds *that* lock is just about to make the first file.
    fn remove_if_empty(&self) -> bool {
        self.is_in_place() && unlinkat(CWD, &self.path, AtFlags::REMOVEDIR).is_ok()
    }

    /// Whether the folder still has its name.
    pub(super) fn is_in_place(&self) -> bool {
        let (Ok(held), Ok(named)) =
            (fstat(&self.folder), statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW))
        else {
            return false;
        };
        (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
    }

    /// Device and number of what has a name in this folder: nothing else has the same while it is
    /// open or has a name.
    pub(super) fn identity_of(&self, name: &CStr) -> rustix::io::Result<(u64, u64)> {
        let stat = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    fn try_lock(&self) -> bool {
        flock(&self.folder, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    fn lock(&self, patience: &Patience<'_>) -> Result<(), Error> {
        while !self.try_lock() {
            patience.check()?;
            if patience.is_over() {
                return Err(Error::Busy { path: self.path.clone() });
            }
            std::thread::sleep(LOCK_RETRY);
        }
        Ok(())
    }

    fn unlock(&self) {
        if let Err(error) = flock(&self.folder, FlockOperation::Unlock) {
            tracing::warn!(folder = %self.path.display(), %error, "cannot unlock");
        }
    }
}
