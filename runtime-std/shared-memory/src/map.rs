//! One range of addresses over a file, or reserved without one, unmapped on drop.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// A shared mapping from the start of a file, or a range of zeros that a file replaces later.
///
/// The file was allocated to at least that length before it was touched, and no file here is ever
/// truncated. So every byte of the mapping can be accessed as long as the mapping exists, even if
/// the file loses its name. The range never has a gap, even while a file replaces its content.
#[derive(Debug)]
pub(super) struct Map {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the struct only names memory. All access through it is atomic, or follows the rules of
// core's `memory`.
unsafe impl Send for Map {}
// SAFETY: as for `Send`.
unsafe impl Sync for Map {}

/// The permitted access through a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Read-only: a store is a fault.
    Read,
    /// Read and write: the owner's row, and doorbells.
    Write,
}

impl Map {
    /// Maps the first `bytes` bytes of a file with its pages in place, because a fault on a
    /// message's path costs more than the message.
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

    /// Maps memory that may be very large, in huge pages if the system provides them on request. A
    /// file that has not been allocated yet gets its pages here, as far as pages are available. The
    /// caller must allocate the rest before it touches a page.
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
            // SAFETY: exactly the mapped range; no advice changes its content. Requesting pages in
            // this way reports their absence, and does not kill the process.
            if let Err(error) = unsafe { madvise(map.base.as_ptr().cast(), bytes, advice) } {
                // An older kernel, or one without huge pages. Missing pages cause faults later.
                tracing::debug!(%error, ?advice, "not for this mapping");
            }
        }
        Ok(map)
    }

    /// Maps memory that may be very large and is rarely read. Its pages are allocated as they are
    /// read.
    pub(super) fn new_sparse(file: BorrowedFd<'_>, bytes: usize) -> rustix::io::Result<Self> {
        Self::of_file(file, bytes, ProtFlags::READ, MapFlags::SHARED)
    }

    fn of_file(
        file: BorrowedFd<'_>,
        bytes: usize,
        protection: ProtFlags,
        flags: MapFlags,
    ) -> rustix::io::Result<Self> {
        // SAFETY: the kernel chooses the address, so no existing mapping is affected.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, file, 0)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { base, bytes })
    }

    /// Reserves a readable range of zeros until a file is mapped there
    /// ([`replace`](Self::replace)). The range takes no memory.
    pub(super) fn reserve(bytes: usize) -> rustix::io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses the address, so no existing mapping is affected.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ, flags)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { base, bytes })
    }

    /// Maps a file of at least this length over the range, read-only. A concurrent reader sees
    /// either the old content or the new, because a fault waits until the kernel has exchanged
    /// them.
    pub(super) fn replace(&self, file: BorrowedFd<'_>) -> rustix::io::Result<()> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE | MapFlags::FIXED;
        // SAFETY: exactly the range that `self` owns. No reference promises that its bytes stay the
        // same: they are read as atomics, or by the rules of core's `memory`.
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

    /// Called after a failed exchange, because the kernel may have removed the old mapping, and the
    /// next reader would fault.
    fn close_gap(&self) {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: as in `replace`.
        let closed = unsafe {
            mmap_anonymous(self.base.as_ptr().cast(), self.bytes, ProtFlags::READ, flags)
        };
        if let Err(error) = closed {
            tracing::error!(%error, "a row is lost and cannot be replaced, so the process exits \
                                     before it reads the row");
            std::process::abort();
        }
    }

    /// Returns the first byte.
    pub(super) const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the length in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the 8-byte cell at an offset. In a read-only mapping, it may only be loaded.
    pub(super) fn cell(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.bytes, "a cell inside the mapping");
        // SAFETY: in range and aligned by the assertion, because a mapping starts on a page; mapped
        // while `self` lives; accessed only by atomic operations, in every process.
        unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// Returns the first four bytes as the word that a futex waits on.
    pub(super) fn word(&self) -> &AtomicU32 {
        // SAFETY: no mapping is empty, and it starts on a page. Otherwise as in `cell`.
        unsafe { self.base.cast::<AtomicU32>().as_ref() }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `new` mapped. Everything borrowed from it borrowed `self`,
        // which ends here.
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
    fn reserved_range_is_zeros_until_file_is_mapped() {
        let place = Map::reserve(BYTES).expect("addresses");
        let last = place.cell(BYTES - 8);
        assert_eq!(last.load(std::sync::atomic::Ordering::Relaxed), 0);
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&[1; BYTES]).expect("content");
        // An unreadable file cannot be mapped there, so the range keeps its content.
        let unreadable = std::fs::OpenOptions::new().write(true).open(file.path()).expect("opened");
        assert!(place.replace(unreadable.as_fd()).is_err());
        assert_eq!(last.load(std::sync::atomic::Ordering::Relaxed), 0);
        place.replace(file.as_file().as_fd()).expect("it may be read");
        assert_eq!(last.load(std::sync::atomic::Ordering::Relaxed), 0x0101_0101_0101_0101);
        // One file then replaces another, as when a row is made anew.
        let other = tempfile::NamedTempFile::new().expect("a file");
        other.as_file().set_len(BYTES as u64).expect("its length");
        place.replace(other.as_file().as_fd()).expect("it may be read");
        assert_eq!(last.load(std::sync::atomic::Ordering::Relaxed), 0);
    }
}
