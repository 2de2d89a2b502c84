//! A file as memory that processes of this machine share.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The first bytes of a file, with all pages in place; unmapped when dropped.
#[derive(Debug)]
pub struct Mapped {
    base: NonNull<u8>,
    length: usize,
}

impl Mapped {
    /// Maps `length` bytes, to be read.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn read_only(file: impl AsFd, length: usize) -> io::Result<Self> {
        Self::new(file, length, ProtFlags::READ)
    }

    /// Maps `length` bytes, to be read and written.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn writable(file: impl AsFd, length: usize) -> io::Result<Self> {
        Self::new(file, length, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn new(file: impl AsFd, length: usize, protection: ProtFlags) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses the address, so nothing that is mapped already is touched.
        let base = unsafe { mmap(std::ptr::null_mut(), length, protection, flags, file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length })
    }

    /// All bytes.
    ///
    /// # Safety
    /// The file is as long as the map, and no process writes to these bytes meanwhile.
    #[inline]
    #[must_use]
    pub const unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: mapped while `self` lives; the caller answers for the rest.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.length) }
    }

    /// The same, to be written to.
    ///
    /// # Safety
    /// The file is as long as the map, which is [writable](Self::writable), and no other process
    /// reads or writes these bytes meanwhile.
    #[inline]
    #[must_use]
    pub const unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped while `self` lives; the caller answers for the rest.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nothing borrows from it any more.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}
