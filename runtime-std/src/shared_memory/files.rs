//! A member's two files: how they are made, and how peers look at them.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    FallocateFlags, FlockOperation, Mode, OFlags, fallocate, flock, fstat, fstatvfs, openat, renameat,
};
use rustix::io::Errno;
use tramontane_core::ids::NodeId;

use super::error::Error;
use super::folder::{Folder, Patience, is_live};
use super::header::{HEADER_BYTES, Header};
use super::map::{Access, Map};
use super::root::{GroupName, Root};

/// A doorbell's file: one page, since no smaller piece can be mapped.
const BELL_BYTES: usize = 4096;

/// The unit in which memory is handed out, for the estimate of what a group needs.
const PAGE: u64 = 4096;

/// The names of a member's files.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) row: CString,
    pub(super) bell: CString,
    making: CString,
}

impl Names {
    pub(super) fn of(id: NodeId) -> Self {
        // Digits hold no zero byte.
        let name = |kind: &str| CString::new(format!("{kind}-{id}")).unwrap_or_default();
        Self { row: name("row"), bell: name("bell"), making: name(".new") }
    }
}

/// The whole of a row file, in bytes.
pub(super) fn row_file_bytes(row_bytes: usize) -> usize {
    row_bytes.saturating_add(HEADER_BYTES)
}

/// What a group takes in shared memory, given its row files' sizes.
pub(super) fn group_bytes(row_files: impl Iterator<Item = usize>) -> u64 {
    let pages = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(PAGE).saturating_mul(PAGE);
    row_files.fold(0_u64, |sum, bytes| sum.saturating_add(pages(bytes)).saturating_add(pages(BELL_BYTES)))
}

/// A member's own files: mapped, locked, not yet filled. Their names go when this is dropped.
#[derive(Debug)]
pub(super) struct OwnFiles {
    pub(super) folder: Folder,
    names: Names,
    /// Holds the lock that says that this member lives.
    pub(super) row_file: OwnedFd,
}

impl OwnFiles {
    /// Takes the member's place in the group: an empty row file, locked, and an empty bell file.
    ///
    /// `needed` is what the whole group takes; whether it is to be had is checked before anything is made.
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
        Ok(Self { folder, names, row_file })
    }

    /// Allocates and maps both files. Takes a while for a large row, and holds no lock of the folder.
    pub(super) fn map(
        &self,
        row_file_bytes: usize,
        patience: &Patience<'_>,
    ) -> Result<(Map, Arc<Map>), Error> {
        let path = self.folder.path();
        let failed = |errno| Error::from_errno("cannot map a file of", path, errno);
        let bell_file = open_bell(&self.folder, &self.names).map_err(failed)?;
        allocate(&self.folder, &bell_file, BELL_BYTES, patience)?;
        allocate(&self.folder, &self.row_file, row_file_bytes, patience)?;
        let row = Map::new(self.row_file.as_fd(), row_file_bytes, Access::Write).map_err(failed)?;
        let bell = Map::new(bell_file.as_fd(), BELL_BYTES, Access::Write).map_err(failed)?;
        Ok((row, Arc::new(bell)))
    }
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        // Both names are ours as long as the lock is: nobody removes a live member's files.
        self.folder.remove(&self.names.bell);
        self.folder.remove(&self.names.row);
        // Without this, a child that was forked meanwhile would keep the lock, and this member would seem
        // to live.
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
        return Err(Error::DuplicateId { id, group: folder.name().to_string(), pid: owner_of(&row) });
    }
    check_space(folder, needed)?;

    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = |name| openat(folder.as_fd(), name, flags, Mode::RUSR | Mode::WUSR);
    let made = (|| {
        drop(create(&names.bell)?);
        // Under another name until it is locked: a peer that looks for the row without the folder's lock
        // must never find it without its owner's.
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
fn holds(file: &OwnedFd, bytes: usize) -> bool {
    fstat(file).is_ok_and(|stat| usize::try_from(stat.st_size).is_ok_and(|size| size >= bytes))
}

fn open_bell(folder: &Folder, names: &Names) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder.as_fd(), &names.bell, flags, Mode::empty())
}

/// Gives a file its pages, all of them, or says that there are not enough.
fn allocate(folder: &Folder, file: &OwnedFd, bytes: usize, patience: &Patience<'_>) -> Result<(), Error> {
    let length = u64::try_from(bytes).unwrap_or(u64::MAX);
    loop {
        patience.check()?;
        return match fallocate(file, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(()),
            // A signal; what was allocated is given back, and its handler may have set `cancel`.
            Err(Errno::INTR) => continue,
            Err(Errno::NOSPC | Errno::FBIG | Errno::NOMEM) => Err(no_space(folder, length)),
            Err(errno) => Err(Error::from_errno("cannot allocate memory in", folder.path(), errno)),
        };
    }
}

/// Refuses a group that cannot fit, before any of it is allocated: all of its members say the same then.
fn check_space(folder: &Folder, needed: u64) -> Result<(), Error> {
    // In this order: what a peer allocates in between counts twice for us, not against us.
    let free = free_bytes(folder);
    let held =
        folder.allocated().map_err(|errno| Error::from_errno("cannot examine", folder.path(), errno))?;
    let missing = needed.saturating_sub(held);
    if missing > free {
        return Err(Error::NoSpace { path: folder.path().to_path_buf(), needed: missing, free });
    }
    Ok(())
}

fn no_space(folder: &Folder, needed: u64) -> Error {
    Error::NoSpace { path: folder.path().to_path_buf(), needed, free: free_bytes(folder) }
}

/// What can still be allocated: the file system's limit, or the machine's memory where that is less.
///
/// A file system in memory may be larger than the memory that is left, and then the kernel does not refuse:
/// it kills. An estimate, since other programs allocate too.
fn free_bytes(folder: &Folder) -> u64 {
    let file_system = match fstatvfs(folder.as_fd()) {
        // One without limit says that it has no blocks at all.
        Ok(stat) if stat.f_blocks > 0 => stat.f_bavail.saturating_mul(stat.f_frsize),
        _ => u64::MAX,
    };
    file_system.min(available_memory().unwrap_or(u64::MAX))
}

/// Memory and swap that the kernel thinks it can give, if it says so.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let available = kilobytes("MemAvailable")?.saturating_add(kilobytes("SwapFree").unwrap_or(0));
    Some(available.saturating_mul(1024))
}

/// A peer's files, open to be looked at.
#[derive(Debug)]
pub(super) struct PeerFiles {
    row_file: OwnedFd,
    header: Map,
    names: Names,
}

impl PeerFiles {
    /// Opens a peer's row, if it is there, its owner lives, and has written its header.
    pub(super) fn find(folder: &Folder, id: NodeId) -> rustix::io::Result<Option<Self>> {
        let names = Names::of(id);
        let Some(row_file) = folder.open_row(&names.row)? else { return Ok(None) };
        if !is_live(row_file.as_fd())? || !holds(&row_file, HEADER_BYTES) {
            return Ok(None);
        }
        let header = Map::new(row_file.as_fd(), HEADER_BYTES, Access::Read)?;
        if !Header::new(&header).is_written() {
            return Ok(None);
        }
        Ok(Some(Self { row_file, header, names }))
    }

    /// What the peer says of itself.
    pub(super) fn header(&self) -> Header<'_> {
        Header::new(&self.header)
    }

    /// Whether its owner is still there.
    pub(super) fn is_live(&self) -> rustix::io::Result<bool> {
        Ok(!self.header().state().is_over() && is_live(self.row_file.as_fd())?)
    }

    /// Maps both files: the row to read, the bell to ring. Nothing if they are not what they should be.
    pub(super) fn map(
        &self,
        folder: &Folder,
        row_file_bytes: usize,
    ) -> rustix::io::Result<Option<(Map, Arc<Map>)>> {
        let bell_file = match open_bell(folder, &self.names) {
            Ok(file) => file,
            // The peer is just leaving.
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        if !holds(&self.row_file, row_file_bytes) || !holds(&bell_file, BELL_BYTES) {
            return Ok(None);
        }
        let row = Map::new(self.row_file.as_fd(), row_file_bytes, Access::Read)?;
        let bell = Map::new(bell_file.as_fd(), BELL_BYTES, Access::Write)?;
        Ok(Some((row, Arc::new(bell))))
    }

    /// The open row file, whose lock says whether the peer lives.
    pub(super) fn into_row_file(self) -> OwnedFd {
        self.row_file
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_group_takes_whole_pages_and_a_bell_a_member() {
        assert_eq!(group_bytes([4096, 4097].into_iter()), 4096 + 8192 + 2 * 4096);
        assert_eq!(group_bytes([usize::MAX, usize::MAX].into_iter()), u64::MAX);
    }

    #[test]
    fn the_kernel_says_how_much_memory_it_can_give() {
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }

    /// A small file system, if this user may mount one.
    struct Mounted(PathBuf);

    impl Mounted {
        fn new() -> Option<Self> {
            let path = PathBuf::from(format!("/dev/shm/tramontane-unit-{}", std::process::id()));
            std::fs::create_dir(&path).expect("a folder");
            let place = Self(path);
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", "size=1m", "tramontane-test"]).arg(&place.0);
            let mounted = mount.output().is_ok_and(|output| output.status.success());
            mounted.then_some(place)
        }
    }

    impl Drop for Mounted {
        fn drop(&mut self) {
            // Lazily: a child that another test is just starting may still hold a file of it.
            let _ = Command::new("umount").arg("-l").arg(&self.0).output();
            let _ = std::fs::remove_dir(&self.0);
        }
    }

    /// What the check beforehand cannot see: that others allocate at the same time.
    #[test]
    fn an_allocation_that_fails_after_the_check_is_an_error_and_leaves_nothing() {
        let Some(place) = Mounted::new() else {
            println!("skipped: this user may not mount a small file system");
            return;
        };
        let (root, group) = (Root::under(&place.0), GroupName::new("late").expect("a name"));
        let never = AtomicBool::new(false);
        let patience = Patience { until: Instant::now() + Duration::from_secs(9), cancel: &never };
        let files = OwnFiles::claim(&root, &group, NodeId(1), 0, &patience).expect("names are cheap");
        let error = files.map(2 << 20, &patience).expect_err("two of one MiB");
        assert!(
            matches!(error, Error::NoSpace { needed, free, .. } if needed == 2 << 20 && free < 1 << 20),
            "{error}"
        );
        drop(files);
        assert!(!root.path().exists());
    }
}
