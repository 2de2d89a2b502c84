//! Zeroed memory, whose pages the system provides when they are first touched.
//!
//! A view's memory is allocated between two heartbeats, and contains a copy of each member's row:
//! 65 MB for 64 members with the default rings. If 64 processes on two processors touched all pages
//! at once, they would show no heartbeat for seconds, and declare each other dead.

use std::ops::Deref;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use tramontane_core::layout::CACHE_LINE;
use tramontane_core::memory::Line;

use super::memory::NoRows;

/// Lines of one allocation, initially zero.
#[derive(Debug)]
pub(super) struct ZeroedLines {
    /// The start of a mapping that only this value has, or dangling if there are no lines.
    base: NonNull<Line>,
    count: usize,
}

// SAFETY: the value owns its memory, which is accessed only as shared lines of atomics.
unsafe impl Send for ZeroedLines {}
// SAFETY: as for `Send`.
unsafe impl Sync for ZeroedLines {}

impl ZeroedLines {
    /// Allocates at least `bytes` bytes, without touching them.
    pub(super) fn new(bytes: usize) -> Result<Self, NoRows> {
        let count = bytes.div_ceil(CACHE_LINE);
        let too_much = NoRows::TooMuch { bytes };
        let length = count.checked_mul(CACHE_LINE).ok_or(too_much)?;
        if length == 0 {
            return Ok(Self { base: NonNull::dangling(), count });
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, so no existing mapping is affected.
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE) };
        let base = NonNull::new(base.map_err(|_| too_much)?.cast()).ok_or(too_much)?;
        Ok(Self { base, count })
    }
}

impl Deref for ZeroedLines {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        // SAFETY: the mapping starts on a page, and so on a cache line; it has `count` lines and
        // lives as long as `self`. All its bytes are zero at first, which is a valid line, and are
        // written only through lines.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.count) }
    }
}

impl Drop for ZeroedLines {
    fn drop(&mut self) {
        if self.count > 0 {
            // SAFETY: exactly the mapping that `new` made. Nothing borrows it any longer.
            let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.count * CACHE_LINE) };
            debug_assert!(unmapped.is_ok(), "{unmapped:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use tramontane_core::memory::{Row, RowWriter};

    use super::*;

    /// The number of pages in the test's memory. A page has 4 KiB or more.
    const PAGES: usize = 256;

    /// Returns the number of pages that the system has provided.
    fn pages(lines: &ZeroedLines) -> usize {
        let mut resident = [0; PAGES];
        // SAFETY: the range is mapped, and the list has one entry for each of its pages.
        let asked = unsafe {
            libc::mincore(lines.base.as_ptr().cast(), PAGES << 12, resident.as_mut_ptr())
        };
        assert_eq!(asked, 0);
        resident.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn allocation_touches_no_page() {
        let lines = ZeroedLines::new(PAGES << 12).expect("memory");
        assert_eq!(pages(&lines), 0);
        RowWriter::from_lines(&lines).cell(PAGES << 11).expect("a cell").publish(5);
        assert!(pages(&lines) > 0);
        let row = Row::from_lines(&lines);
        assert_eq!(row.cell(PAGES << 11).expect("a cell").load(), 5);
        assert_eq!(row.cell(0).expect("a cell").load(), 0);
    }

    #[test]
    fn empty_row_needs_no_memory() {
        assert!(ZeroedLines::new(0).expect("nothing").is_empty());
        assert_eq!(ZeroedLines::new(1).expect("a line").len(), 1);
    }
}
