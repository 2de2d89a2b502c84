//! Memory that processes pass to each other: a memfd, fully allocated and sealed.
//!
//! # Invariants
//! - Nobody can change its length, not even the owner, so no reader crashes because a peer has
//!   shortened it.
//! - Rows and block memory are written through one mapping, which their owner created before
//!   sealing them. A peer receives the same descriptor, but can map it only for reading.
//! - All pages are allocated before a peer sees the memory, so running out of memory is an error at
//!   the owner, not a fault at the peer.
//! - A peer's descriptor is checked for all of this before it is mapped.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    fstatfs, ftruncate, memfd_create,
};
use rustix::io::Errno;

use super::error::Error;
use super::map::{Access, Map};
use super::space::no_memory;

/// Name of the memory in the list of a process's mappings.
const NAME: &str = "tramontane";

/// Magic number of a file system of huge pages.
const HUGETLBFS: u64 = 0x9584_58f6;

/// The processes that may write to the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writers {
    /// Only its owner, through the mapping that it created first. Used for rows and block memory.
    Owner,
    /// Every process that has the descriptor. Used for doorbells.
    All,
}

impl Writers {
    const fn seals(self) -> SealFlags {
        let fixed = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);
        match self {
            Self::Owner => fixed.union(SealFlags::FUTURE_WRITE),
            Self::All => fixed,
        }
    }
}

/// Memory of this process that is passed to others.
#[derive(Debug)]
pub(super) struct SealedMemory {
    pub(super) file: OwnedFd,
    /// The only writable mapping.
    pub(super) map: Map,
}

impl SealedMemory {
    /// Allocates memory of that length, filled with zeros.
    pub(super) fn new(bytes: usize, writers: Writers) -> Result<Self, Error> {
        Self::mapped_by(bytes, writers, Map::new)
    }

    /// Allocates memory that may be very large.
    pub(super) fn new_large(bytes: usize, writers: Writers) -> Result<Self, Error> {
        Self::mapped_by(bytes, writers, Map::new_large)
    }

    fn mapped_by(
        bytes: usize,
        writers: Writers,
        map: impl FnOnce(BorrowedFd<'_>, usize, Access) -> rustix::io::Result<Map>,
    ) -> Result<Self, Error> {
        let file = create().map_err(|errno| failed("cannot create", errno))?;
        let length = u64::try_from(bytes).unwrap_or(u64::MAX);
        ftruncate(&file, length).map_err(|errno| match errno {
            Errno::FBIG | Errno::INVAL => no_memory(length),
            errno => failed("cannot size", errno),
        })?;
        // The memory is mapped before it is allocated, because huge pages are given to a mapping
        // that asks for them, not to a file.
        let map = map(file.as_fd(), bytes, Access::Write).map_err(|errno| match errno {
            Errno::NOMEM => no_memory(length),
            errno => failed("cannot map", errno),
        })?;
        allocate(&file, length)?;
        fcntl_add_seals(&file, writers.seals()).map_err(|errno| match errno {
            Errno::INVAL => Error::CannotSeal,
            errno => failed("cannot seal", errno),
        })?;
        Ok(Self { file, map })
    }
}

fn create() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL) {
        // The flag is unknown before Linux 6.3. Machines that old do not require it.
        Err(Errno::INVAL) => memfd_create(NAME, flags),
        made => made,
    }
}

/// Allocates all pages of the memory, or fails if there are not enough.
fn allocate(file: &OwnedFd, length: u64) -> Result<(), Error> {
    loop {
        return match fallocate(file, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(()),
            // After a signal, the allocated pages are returned, so the call is repeated.
            Err(Errno::INTR) => continue,
            Err(Errno::NOSPC | Errno::FBIG | Errno::NOMEM) => Err(no_memory(length)),
            Err(errno) => Err(failed("cannot allocate", errno)),
        };
    }
}

fn failed(action: &'static str, errno: Errno) -> Error {
    Error::Io { action, path: Path::new("shared memory (memfd)").into(), source: errno.into() }
}

/// The defect of a descriptor sent by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    #[error("it is not a memfd")]
    NotMemory,
    #[error("it is not sealed, so its length or content can change")]
    NotSealed,
    #[error("some of its pages are not allocated")]
    NotAllocated,
    #[error("it does not have the agreed length")]
    Length,
    #[error("it was created by another process, or for another purpose")]
    Owner,
    #[error("the message that announces it is malformed")]
    Message,
    #[error("the peer has sent too many descriptors")]
    TooMany,
}

/// Checks that nobody can remove the memory of a peer's descriptor, and returns its length.
pub(super) fn check(file: BorrowedFd<'_>, writers: Writers) -> Result<usize, Unusable> {
    let seals = fcntl_get_seals(file).map_err(|_| Unusable::NotMemory)?;
    if !seals.contains(writers.seals()) {
        return Err(Unusable::NotSealed);
    }
    let stat = fstat(file).map_err(|_| Unusable::NotMemory)?;
    // Pages of `hugetlbfs` may be missing although the file claims that they exist.
    let kind = fstatfs(file).map_err(|_| Unusable::NotMemory)?.f_type;
    if u64::try_from(kind) == Ok(HUGETLBFS) {
        return Err(Unusable::NotMemory);
    }
    if stat.st_blocks.saturating_mul(512) < stat.st_size {
        return Err(Unusable::NotAllocated);
    }
    usize::try_from(stat.st_size).map_err(|_| Unusable::Length)
}

#[cfg(test)]
mod tests {
    use rustix::mm::{MapFlags, ProtFlags, mmap};

    use super::*;

    const BYTES: usize = 3 * 4096;

    fn memory(flags: MemfdFlags, bytes: usize, seals: SealFlags) -> OwnedFd {
        let file = memfd_create(NAME, flags).expect("a memfd");
        ftruncate(&file, bytes as u64).expect("its length");
        if !seals.is_empty() {
            fcntl_add_seals(&file, seals).expect("sealed");
        }
        file
    }

    fn is_mapped_writable(file: &OwnedFd) -> bool {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address. The memory stays mapped until the test ends.
        unsafe { mmap(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED, file, 0) }.is_ok()
    }

    #[test]
    fn process_with_row_descriptor_cannot_change_memory() {
        let SealedMemory { file, map } = SealedMemory::new(BYTES, Writers::Owner).expect("made");
        for length in [0, 4096, 1 << 20] {
            assert_eq!(ftruncate(&file, length), Err(Errno::PERM), "{length}");
        }
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        assert_eq!(fallocate(&file, punch, 0, 4096), Err(Errno::PERM));
        assert_eq!(rustix::io::pwrite(&file, &[1], 0), Err(Errno::PERM));
        assert_eq!(fcntl_add_seals(&file, SealFlags::WRITE), Err(Errno::PERM));
        assert!(!is_mapped_writable(&file));
        map.cell(BYTES - 8).store(7, std::sync::atomic::Ordering::Relaxed);
        let reader = Map::new(file.as_fd(), BYTES, Access::Read).expect("mapped");
        assert_eq!(reader.cell(BYTES - 8).load(std::sync::atomic::Ordering::Relaxed), 7);
        assert_eq!(check(file.as_fd(), Writers::Owner), Ok(BYTES));
    }

    #[test]
    fn doorbell_memory_is_writable_but_not_resizable() {
        let bell = SealedMemory::new(BYTES, Writers::All).expect("made");
        assert!(is_mapped_writable(&bell.file));
        assert_eq!(ftruncate(&bell.file, 0), Err(Errno::PERM));
        assert_eq!(check(bell.file.as_fd(), Writers::All), Ok(BYTES));
        assert_eq!(check(bell.file.as_fd(), Writers::Owner), Err(Unusable::NotSealed));
    }

    #[test]
    fn unsealed_or_partial_memory_is_refused() {
        let sealing = MemfdFlags::ALLOW_SEALING;
        let owners = Writers::Owner.seals();
        let refused = |file: OwnedFd| check(file.as_fd(), Writers::Owner).expect_err("refused");
        let unsealed = memory(sealing, BYTES, SealFlags::empty());
        assert_eq!(refused(unsealed), Unusable::NotSealed);
        assert_eq!(
            refused(memory(MemfdFlags::empty(), BYTES, SealFlags::empty())),
            Unusable::NotSealed
        );
        for one in [SealFlags::SHRINK, SealFlags::GROW, SealFlags::FUTURE_WRITE, SealFlags::SEAL] {
            assert_eq!(refused(memory(sealing, BYTES, owners - one)), Unusable::NotSealed);
        }
        assert_eq!(refused(memory(sealing, BYTES, owners)), Unusable::NotAllocated);
        let (pipe, _end) = std::io::pipe().expect("a pipe");
        assert_eq!(refused(pipe.into()), Unusable::NotMemory);
        let folder = std::fs::File::open("/dev/shm").expect("a folder");
        assert_eq!(refused(folder.into()), Unusable::NotMemory);
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(BYTES as u64).expect("its length");
        assert_eq!(refused(file.into()), Unusable::NotSealed);
    }

    #[test]
    fn oversized_memory_length_is_an_error() {
        let error = SealedMemory::new(usize::MAX, Writers::Owner).expect_err("too long");
        assert!(matches!(error, Error::NoMemory { .. }), "{error}");
    }
}
