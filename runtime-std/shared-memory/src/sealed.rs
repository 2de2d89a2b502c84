//! Memory that processes pass to each other: a memfd, allocated whole and sealed.
//!
//! # Invariants
//! - Nobody changes its length, the owner included: no reader of it dies because a peer shortened
//!   it.
//! - Rows and block memory are written through one mapping, which their owner made before it sealed
//!   them. A peer gets the same descriptor and can map it only to read it.
//! - All pages are there before a peer sees the memory: a full machine is an error at the owner.
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

/// How the memory is called where a process's mappings are listed.
const NAME: &str = "tramontane";

/// What a file system of huge pages says that it is.
const HUGETLBFS: u64 = 0x9584_58f6;

/// Who may write the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writers {
    /// Its owner, through the mapping that it made first: rows and block memory.
    Owner,
    /// Every process that has the descriptor: doorbells.
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

/// Memory of this process, as it is passed to others.
#[derive(Debug)]
pub(super) struct SealedMemory {
    pub(super) file: OwnedFd,
    /// The one mapping that may be written.
    pub(super) map: Map,
}

impl SealedMemory {
    /// Makes memory of that length, all of it zeros.
    pub(super) fn new(bytes: usize, writers: Writers) -> Result<Self, Error> {
        Self::mapped_by(bytes, writers, Map::new)
    }

    /// The same for what may be very long.
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
        // Mapped before it is allocated: huge pages are given to a mapping that asked for them, not
        // to a file.
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
        // Before Linux 6.3, which no machine forbids then.
        Err(Errno::INVAL) => memfd_create(NAME, flags),
        made => made,
    }
}

/// Gives the memory its pages, all of them, or says that there are not enough.
fn allocate(file: &OwnedFd, length: u64) -> Result<(), Error> {
    loop {
        return match fallocate(file, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(()),
            // A signal; what was allocated is given back.
            Err(Errno::INTR) => continue,
            Err(Errno::NOSPC | Errno::FBIG | Errno::NOMEM) => Err(no_memory(length)),
            Err(errno) => Err(failed("cannot allocate", errno)),
        };
    }
}

fn failed(action: &'static str, errno: Errno) -> Error {
    Error::Io { action, path: Path::new("shared memory (memfd)").into(), source: errno.into() }
}

/// What is wrong with a descriptor that a peer sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    #[error("it is not memory (a memfd)")]
    NotMemory,
    #[error("its length or content can be changed: it is not sealed")]
    NotSealed,
    #[error("some of its pages are not allocated")]
    NotAllocated,
    #[error("it has another length than was agreed")]
    Length,
    #[error("it was made by another process, or for something else")]
    Owner,
    #[error("its message is not understood")]
    Message,
    #[error("its sender has sent too many")]
    TooMany,
}

/// Checks that nobody can take the memory behind a peer's descriptor away, and gives its length.
pub(super) fn check(file: BorrowedFd<'_>, writers: Writers) -> Result<usize, Unusable> {
    let seals = fcntl_get_seals(file).map_err(|_| Unusable::NotMemory)?;
    if !seals.contains(writers.seals()) {
        return Err(Unusable::NotSealed);
    }
    let stat = fstat(file).map_err(|_| Unusable::NotMemory)?;
    // Pages of `hugetlbfs` may be missing although the file says that they are there.
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
        // SAFETY: the kernel chooses the address; it stays mapped until the test ends.
        unsafe { mmap(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED, file, 0) }.is_ok()
    }

    #[test]
    fn who_has_the_descriptor_cannot_write_shorten_or_lengthen_the_memory() {
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
    fn a_doorbell_can_be_written_and_keeps_its_length() {
        let bell = SealedMemory::new(BYTES, Writers::All).expect("made");
        assert!(is_mapped_writable(&bell.file));
        assert_eq!(ftruncate(&bell.file, 0), Err(Errno::PERM));
        assert_eq!(check(bell.file.as_fd(), Writers::All), Ok(BYTES));
        assert_eq!(check(bell.file.as_fd(), Writers::Owner), Err(Unusable::NotSealed));
    }

    #[test]
    fn what_is_not_sealed_whole_memory_is_refused() {
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
    fn a_length_that_cannot_be_is_an_error() {
        let error = SealedMemory::new(usize::MAX, Writers::Owner).expect_err("too long");
        assert!(matches!(error, Error::NoMemory { .. }), "{error}");
    }
}
