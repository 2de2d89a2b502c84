//! Pages from the kernel: of the usual size, or huge ones, of which an adapter needs fewer entries
//! in its tables.

use std::io;
use std::ptr::NonNull;
use std::sync::Once;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use tramontane_core::memory::{Row, RowWriter};

/// Which pages are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PageSize {
    /// Those of the system.
    #[default]
    Usual,
    /// Huge ones for ranges that fill at least half of one, as far as the system has them.
    Huge,
}

/// Bytes of a huge page, on x86-64 and on most others.
const HUGE_BYTES: usize = 2 << 20;

/// Zeroed pages of this process, which never move.
#[derive(Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    bytes: usize,
    /// How many are mapped: all of the last huge page.
    mapped_bytes: usize,
}

// SAFETY: memory that is touched through core's rows, which are made to be shared.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps at least so many bytes; at least one.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1);
        Self::map(bytes, bytes, MapFlags::PRIVATE)
    }

    /// Maps at least so many bytes, at least one, in pages of a size. Where the system has no huge
    /// page to give, usual ones are taken, and that is logged once.
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
                    "no huge pages, so usual ones are taken: reserve some (sysctl vm.nr_hugepages)"
                );
            });
            Self::new(bytes)
        })
    }

    fn map(bytes: usize, mapped_bytes: usize, flags: MapFlags) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_bytes, protection, flags) }?;
        // A child that shares these pages would make the kernel copy them under the device's hands.
        // SAFETY: our own mapping; the advice takes nothing from it.
        let _ = unsafe { madvise(base, mapped_bytes, Advice::LinuxDontFork) };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes, mapped_bytes })
    }

    /// Where they begin.
    pub(crate) const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How many bytes can be used.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The pages as a row to be read.
    pub(crate) const fn row(&self) -> Row<'_> {
        // SAFETY: mapped while `self` lives, aligned to a page. Written through core's types, and
        // by devices whose peers keep the same rules.
        unsafe { Row::from_raw(self.base, self.bytes) }
    }

    /// The first so many bytes as a row to be written, and no more than there are.
    pub(crate) fn writer_of_first(&self, bytes: usize) -> RowWriter<'_> {
        // SAFETY: mapped while `self` lives, aligned to a page, writable, and no longer than that.
        unsafe { RowWriter::from_raw(self.base, bytes.min(self.bytes)) }
    }

    /// The pages as a row to be written.
    pub(crate) const fn writer(&self) -> RowWriter<'_> {
        // SAFETY: as above, and they are writable.
        unsafe { RowWriter::from_raw(self.base, self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, unmapped once; rows borrow `self`, and registrations keep it
        // alive.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the system has huge pages is its own affair: both ways the memory is there.
    #[test]
    fn memory_is_there_in_huge_pages_or_without_them() {
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
    fn a_length_that_no_machine_has_is_refused() {
        assert!(Pages::sized(usize::MAX, PageSize::Huge).is_err());
        assert!(Pages::sized(usize::MAX, PageSize::Usual).is_err());
    }
}
