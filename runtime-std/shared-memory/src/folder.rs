//! One group's folder: its lock, the processes that use it, and the files that dead processes have
//! left behind.
//!
//! The lock is a `flock` on the folder itself, so there is no lock file to leave behind. It is held
//! for a few system calls at a time, never while memory is allocated, and is taken without
//! blocking. If its holder has been stopped, the other processes do not hang, but get an error
//! after their time limit.

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

/// The pause between two attempts to take the lock.
const LOCK_RETRY: Duration = Duration::from_millis(1);

/// The time for which a leaving member waits for the lock, to remove what crashed peers have left
/// behind.
const LEAVE_PATIENCE: Duration = Duration::from_millis(200);

/// The limits of a wait: a deadline, and a flag that ends it earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'c> {
    /// The deadline.
    pub(super) until: Instant,
    /// Set by another thread or a signal handler to end the wait.
    pub(super) cancel: &'c AtomicBool,
}

impl Patience<'_> {
    /// Fails if the wait has been cancelled.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// Returns whether the owner of a member file is alive. A live owner always holds the exclusive
/// lock.
///
/// The probe takes a *shared* lock, so that probes do not affect each other, and releases it at
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

/// Returns the member file that a name belongs to, which may be that file itself. Sockets have no
/// lock; they are alive as long as their member file is.
fn member_of(name: &CStr) -> Option<CString> {
    let name = name.to_bytes();
    let id = [&b"member-"[..], b"memory-", b"door-"]
        .into_iter()
        .find_map(|kind| name.strip_prefix(kind))?;
    CString::new([b"member-", id].concat()).ok()
}

/// The owners of the files found in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// The number of live members.
    pub(super) living: usize,
    /// The number of removed files of dead members.
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
    /// Opens a group's folder if it exists.
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

    /// Opens a group's folder, creating it if needed, and runs an action while its lock is held.
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
                // The root has been removed after it was opened, because it was empty.
                Ok(()) | Err(Errno::EXIST | Errno::NOENT) => {}
                Err(errno) => {
                    let path = root.path().join(name.as_str());
                    return Err(Error::from_errno("cannot create", &path, errno));
                }
            }
            let Some(folder) = Self::open(root, within.as_fd(), name)? else { continue };
            folder.lock(patience)?;
            // A process that removes a folder holds its lock, so a folder that exists now stays.
            if folder.is_in_place() {
                let outcome = act(&folder);
                if outcome.is_err() && !folder.is_in_place() && !patience.is_over() {
                    // A process without the lock has removed it.
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

    /// Returns the folder's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the group's name.
    pub(super) fn name(&self) -> &GroupName {
        &self.name
    }

    /// Returns the open folder, for finding files in it.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Opens a file for reading, if it exists. Does not block for any kind of file.
    pub(super) fn open_file(&self, name: &CStr) -> rustix::io::Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Removes a file from this folder. Returns true if it existed: a member that is just leaving
    /// may be faster.
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

    /// Removes every file whose owner is dead. The folder's lock must be held.
    ///
    /// A file that is being created has no owner yet, but its creator holds the folder's lock until
    /// it has one.
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

    /// Removes the folder and its contents if no live process is using, joining or leaving the
    /// group. Returns true if there were files of dead members.
    pub(super) fn remove_if_dead(&self) -> bool {
        if !self.try_lock() {
            return false;
        }
        let census = self.remove_the_dead().unwrap_or(Census { living: 1, removed: 0 });
        let gone = census.living == 0 && self.remove_if_empty();
        self.unlock();
        gone && census.removed > 0
    }

    /// Removes files left behind by crashed peers, and the folder with the last of them. Called by
    /// a member that has left.
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

    /// Removes the folder if it is empty, and returns whether it did. The folder's lock must be
    /// held.
    ///
    /// Has an effect only if the name still refers to the locked folder. It may by now refer to
    /// another folder, in which a process that holds *its* lock is about to create the first file.
    fn remove_if_empty(&self) -> bool {
        self.is_in_place() && unlinkat(CWD, &self.path, AtFlags::REMOVEDIR).is_ok()
    }

    /// Returns whether the folder still has its name.
    pub(super) fn is_in_place(&self) -> bool {
        let (Ok(held), Ok(named)) =
            (fstat(&self.folder), statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW))
        else {
            return false;
        };
        (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
    }

    /// Returns the device and inode numbers of a name in this folder. No other file has the same
    /// numbers while this one is open or has a name.
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
