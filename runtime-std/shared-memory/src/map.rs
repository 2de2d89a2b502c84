//! One range of addresses over a file, or over nothing yet, unmapped when dropped.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// A shared mapping from the start of a file; or a range of zeros that a file takes the place of
/// later.
///
/// Its file was allocated to at least that length before it was touched, and no file here is ever
/// truncated: so every byte of it can be touched for as long as it lives, whatever becomes of the
/// file's name. The range is one piece from its first moment to its last, whatever is put there.
#[derive(Debug)]
pub(super) struct Map {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the struct only names memory; all access through it is atomic, or by the rules of core's
// `memory`.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

/// Whether a mapping may be written through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// A store is a fault.
    Read,
    /// The owner's row, and doorbells.
    Write,
}

impl Map {
    /// Maps the first `bytes` bytes of a file, with its pages in place: a fault on a message's path
    /// costs more than the message.
    pub(super) fn new(
        file: BorrowedFd<'_>,
        bytes: usize,
        access: Access,
    ) -> rustix::io::Result<Self> {
        let protection = match access {
            Access::Read => ProtFlags::READ,
            Access::Write => ProtFlags::READ | ProtFlags::WRITE,
        };
        Self::of_file(file, bytes, protection, MapFlags::SHARED | MapFlags::POPULATE)
    }

    /// The same for what may be very long: in huge pages, where the system gives them on request.
    /// A file that is not allocated yet gets its pages here, as far as there are any; the caller
    /// makes sure of them before it touches one.
    pub(super) fn new_large(
        file: BorrowedFd<'_>,
        bytes: usize,
        access: Access,
    ) -> rustix::io::Result<Self> {
        let (protection, populate) = match access {
            Access::Read => (ProtFlags::READ, Advice::LinuxPopulateRead),
            Access::Write => (ProtFlags::READ | ProtFlags::WRITE, Advice::LinuxPopulateWrite),
        };
        let map = Self::of_file(file, bytes, protection, MapFlags::SHARED)?;
        for advice in [Advice::LinuxHugepage, populate] {
            // SAFETY: exactly what was mapped; neither changes what is read there. Who asks for
            // pages in this way is told that there are none, and not killed.
            if let Err(error) = unsafe { madvise(map.base.as_ptr().cast(), bytes, advice) } {
                // An older kernel, or one without huge pages: what is missing costs faults, later.
                tracing::debug!(%error, ?advice, "not for this mapping");
            }
        }
        Ok(map)
    }

    /// The same for what may be very long and is seldom read: pages come as they are read.
    pub(super) fn new_sparse(file: BorrowedFd<'_>, bytes: usize) -> rustix::io::Result<Self> {
        Self::of_file(file, bytes, ProtFlags::READ, MapFlags::SHARED)
    }

    fn of_file(
        file: BorrowedFd<'_>,
        bytes: usize,
        protection: ProtFlags,
        flags: MapFlags,
    ) -> rustix::io::Result<Self> {
        // SAFETY: the kernel chooses the address, so nothing that is mapped already is touched.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, file, 0)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { base, bytes })
    }

    /// A range of zeros, to be read, until a file is there ([`replace`](Self::replace)). It takes
    /// no memory.
    pub(super) fn reserve(bytes: usize) -> rustix::io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses the address, so nothing that is mapped already is touched.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ, flags)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { base, bytes })
    }

    /// Puts a file, of at least this length, in the place of what is mapped here, to be read. Who
    /// reads meanwhile sees the one or the other: the kernel lets a fault wait until it has
    /// exchanged them.
    pub(super) fn replace(&self, file: BorrowedFd<'_>) -> rustix::io::Result<()> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE | MapFlags::FIXED;
        // SAFETY: exactly the range that `self` owns; nobody holds a reference that says that its
        // bytes stay the same: they are read as atomics, or by the rules of core's `memory`.
        match unsafe {
            mmap(self.base.as_ptr().cast(), self.bytes, ProtFlags::READ, flags, file, 0)
        } {
            Ok(_) => Ok(()),
            Err(errno) => {
                self.close_gap();
                Err(errno)
            }
        }
    }

    /// After a failed exchange: the kernel may have taken away what was there, and a gap would be a
    /// fault for the next reader.
    fn close_gap(&self) {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: as in `replace`.
        let closed = unsafe {
            mmap_anonymous(self.base.as_ptr().cast(), self.bytes, ProtFlags::READ, flags)
        };
        if let Err(error) = closed {
            tracing::error!(%error, "a row is gone and cannot be replaced: the process ends before it is read");
            std::process::abort();
        }
    }

    /// The first byte.
    pub(super) const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How many bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The cell of 8 bytes at an offset. Of a read-only mapping, to be loaded only.
    pub(super) fn cell(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.bytes, "a cell inside the mapping");
        // SAFETY: in range and aligned by the assertion (a mapping starts on a page); mapped while
        // `self` lives; touched by atomic operations only, in every process.
        unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// The first four bytes, as the word that a futex waits on.
    pub(super) fn word(&self) -> &AtomicU32 {
        // SAFETY: no mapping is empty, and it starts on a page; otherwise as in `cell`.
        unsafe { self.base.cast::<AtomicU32>().as_ref() }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; whatever borrowed from it borrowed `self`, which ends
        // here.
        if let Err(error) = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) } {
            tracing::warn!(%error, "a mapping could not be undone");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use super::*;

    const BYTES: usize = 3 * 4096;

    #[test]
    fn a_place_is_zeros_until_a_file_is_there_and_is_never_a_gap() {
        let place = Map::reserve(BYTES).expect("addresses");
        let last = place.cell(BYTES - 8);
        assert_eq!(last.load(std::sync::atomic::Ordering::Relaxed), 0);
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&[1; BYTES]).expect("content");
        // What may not be read cannot be put there, and the place stays.
        let unreadable = std::fs::OpenOptions::new().write(true).open(file.path()).expect("opened");
        assert!(place.replace(unreadable.as_fd()).is_err());
        assert_eq!(last.load(std::sync::atomic::Ordering::Relaxed), 0);
        place.replace(file.as_file().as_fd()).expect("it may be read");
        assert_eq!(last.load(std::sync::atomic::Ordering::Relaxed), 0x0101_0101_0101_0101);
        // And a file after a file, as where a row is made anew.
        let other = tempfile::NamedTempFile::new().expect("a file");
        other.as_file().set_len(BYTES as u64).expect("its length");
        place.replace(other.as_file().as_fd()).expect("it may be read");
        assert_eq!(last.load(std::sync::atomic::Ordering::Relaxed), 0);
    }
}
