//! A file as memory that processes of this machine share.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The first bytes of a file, with all pages allocated. Unmapped on drop.
#[derive(Debug)]
pub struct Mapped {
    base: NonNull<u8>,
    length: usize,
}

impl Mapped {
    /// Maps `length` bytes for reading.
    ///
    /// # Errors
    /// Fails with the operating system's error.
    pub fn read_only(file: impl AsFd, length: usize) -> io::Result<Self> {
        Self::new(file, length, ProtFlags::READ)
    }

    /// Maps `length` bytes for reading and writing.
    ///
    /// # Errors
    /// Fails with the operating system's error.
    pub fn writable(file: impl AsFd, length: usize) -> io::Result<Self> {
        Self::new(file, length, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn new(file: impl AsFd, length: usize, protection: ProtFlags) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses the address, so no existing mapping is affected.
        let base = unsafe { mmap(std::ptr::null_mut(), length, protection, flags, file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length })
    }

    /// All bytes.
    ///
    /// # Safety
    /// The file must be as long as the mapping, and no process may write to these bytes while the
    /// returned slice lives.
    #[inline]
    #[must_use]
    pub const unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the range is mapped while `self` lives; the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.length) }
    }

    /// Returns the bytes for writing.
    ///
    /// # Safety
    /// The file must be as long as the mapping, which must be [writable](Self::writable), and no
    /// other process may read or write these bytes while the returned slice lives.
    #[inline]
    #[must_use]
    pub const unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range is mapped while `self` lives; the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this is exactly the mapped range, and nothing borrows from it any longer.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}
