//! Pages from the kernel, of the usual size or huge. A NIC needs fewer table entries for huge
//! pages.

use std::io;
use std::ptr::NonNull;
use std::sync::Once;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use tramontane_core::memory::{Row, RowWriter};

/// The size of pages to allocate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PageSize {
    /// The system's usual pages.
    #[default]
    Usual,
    /// Huge pages for ranges that fill at least half of a huge page, as far as the system has any.
    Huge,
}

/// Size of a huge page in bytes, on x86-64 and most other processors.
const HUGE_BYTES: usize = 2 << 20;

/// Zeroed pages of this process, which never move.
#[derive(Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    bytes: usize,
    /// Number of mapped bytes, up to the end of the last huge page.
    mapped_bytes: usize,
}

// SAFETY: the memory is accessed through the core's rows, which are designed for sharing.
unsafe impl Send for Pages {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps at least `bytes` bytes, and at least one byte.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1);
        Self::map(bytes, bytes, MapFlags::PRIVATE)
    }

    /// Maps at least `bytes` bytes, and at least one byte, in pages of the given size. If the
    /// system has no free huge page, uses usual pages and logs that once.
    pub(crate) fn sized(bytes: usize, size: PageSize) -> io::Result<Self> {
        if size == PageSize::Usual || bytes < HUGE_BYTES / 2 {
            return Self::new(bytes);
        }
        let mapped =
            bytes.checked_next_multiple_of(HUGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        Self::map(bytes, mapped, flags).or_else(|error| {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| {
                tracing::warn!(
                    %error,
                    "no huge pages are free, so usual ones are used; reserve some (sysctl \
                     vm.nr_hugepages)"
                );
            });
            Self::new(bytes)
        })
    }

    fn map(bytes: usize, mapped_bytes: usize, flags: MapFlags) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: this is a new mapping, at an address that the kernel chooses.
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_bytes, protection, flags) }?;
        // If a child shared these pages, the kernel would copy them while the device uses them.
        // SAFETY: this is our own mapping, and the advice does not invalidate it.
        let _ = unsafe { madvise(base, mapped_bytes, Advice::LinuxDontFork) };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes, mapped_bytes })
    }

    /// Returns the start of the pages.
    pub(crate) const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the number of usable bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the pages as a readable row.
    pub(crate) const fn row(&self) -> Row<'_> {
        // SAFETY: mapped while `self` exists, aligned to a page. They are written through the
        // core's types, and by devices whose peers keep the same rules.
        unsafe { Row::from_raw(self.base, self.bytes) }
    }

    /// Returns the first `bytes` bytes, or all bytes if there are fewer, as a writable row.
    pub(crate) fn writer_of_first(&self, bytes: usize) -> RowWriter<'_> {
        // SAFETY: mapped while `self` exists, aligned to a page, writable, and not longer than the
        // mapping.
        unsafe { RowWriter::from_raw(self.base, bytes.min(self.bytes)) }
    }

    /// Returns the pages as a writable row.
    pub(crate) const fn writer(&self) -> RowWriter<'_> {
        // SAFETY: as above, and they are writable.
        unsafe { RowWriter::from_raw(self.base, self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` and unmapped once; rows borrow `self`, and registrations keep it
        // alive.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the system has huge pages does not matter: the memory is mapped in both cases.
    #[test]
    fn pages_are_mapped_with_or_without_huge_pages() {
        for bytes in [0, 1, 4096, HUGE_BYTES / 2, HUGE_BYTES + 1] {
            let pages = Pages::sized(bytes, PageSize::Huge).expect("memory");
            assert_eq!(pages.bytes(), bytes.max(1));
            let last = pages.bytes() - 1;
            pages.writer().apply(last, &[7]).expect("inside");
            let mut byte = [0];
            pages.row().read(last, &mut byte).expect("inside");
            assert_eq!(byte, [7]);
        }
    }

    #[test]
    fn overflowing_page_length_is_refused() {
        assert!(Pages::sized(usize::MAX, PageSize::Huge).is_err());
        assert!(Pages::sized(usize::MAX, PageSize::Usual).is_err());
    }
}
