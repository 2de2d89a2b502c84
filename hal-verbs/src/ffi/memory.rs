//! Pages, protection domains, and registered memory.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::{ibv_alloc_pd, ibv_dealloc_pd, ibv_dereg_mr, ibv_mr, ibv_pd, ibv_reg_mr};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use tramontane_core::memory::{BlockPages, Row, RowWriter};

use super::Context;
use super::last_error;

/// Zeroed pages of this process, which never move.
#[derive(Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: memory that is touched through core's rows, which are made to be shared.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps at least so many bytes; at least one.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }?;
        // A child that shares these pages would make the kernel copy them under the device's hands.
        // SAFETY: our own mapping; the advice takes nothing from it.
        let _ = unsafe { madvise(base, bytes, Advice::LinuxDontFork) };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes })
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
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// What keeps queue pairs from memory that is not theirs.
#[derive(Debug)]
pub(crate) struct ProtectionDomain {
    raw: NonNull<ibv_pd>,
    _context: Arc<Context>,
}

// SAFETY: libibverbs may be called on one domain from several threads.
unsafe impl Send for ProtectionDomain {}
// SAFETY: as above.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// A new one.
    pub(crate) fn new(context: &Arc<Context>) -> io::Result<Self> {
        // SAFETY: the context is open.
        let raw = unsafe { ibv_alloc_pd(context.raw()) };
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        Ok(Self { raw, _context: Arc::clone(context) })
    }

    pub(super) const fn raw(&self) -> *mut ibv_pd {
        self.raw.as_ptr()
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: ended once; what was made in it held it and is gone.
        unsafe { ibv_dealloc_pd(self.raw()) };
    }
}

bitflags::bitflags! {
    /// Rights of access, as in `<infiniband/verbs.h>`. Relaxed ordering is not among them: rows
    /// need order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Access: u32 {
        /// The own device may write.
        const LOCAL_WRITE = 1;
        /// Peers may write.
        const REMOTE_WRITE = 1 << 1;
        /// Peers may read.
        const REMOTE_READ = 1 << 2;
    }
}

/// A registered range of pages, from their start.
#[derive(Debug)]
pub struct MemoryRegion {
    raw: NonNull<ibv_mr>,
    _domain: Arc<ProtectionDomain>,
    pages: Arc<Pages>,
    bytes: usize,
    access: Access,
}

// SAFETY: plain numbers after registration; released once.
unsafe impl Send for MemoryRegion {}
// SAFETY: as above.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// Registers the first `bytes` of some pages.
    pub(crate) fn new(
        domain: &Arc<ProtectionDomain>,
        pages: &Arc<Pages>,
        bytes: usize,
        access: Access,
    ) -> io::Result<Self> {
        if bytes > pages.bytes() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = i32::try_from(access.bits()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: mapped, at least `bytes` long, and kept alive by `pages` below until this is
        // released.
        let raw = unsafe { ibv_reg_mr(domain.raw(), pages.base.as_ptr().cast(), bytes, flags) };
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        Ok(Self { raw, _domain: Arc::clone(domain), pages: Arc::clone(pages), bytes, access })
    }

    /// How many bytes are registered.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether peers may write to it.
    pub(crate) const fn may_be_written(&self) -> bool {
        self.access.contains(Access::REMOTE_WRITE)
    }

    /// The pages that it is a part of.
    pub(crate) const fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// The address of its first byte, as peers name it.
    pub(crate) fn address(&self) -> u64 {
        // Addresses are at most 64 bits wide wherever there is RDMA.
        u64::try_from(self.pages.base.as_ptr().expose_provenance()).unwrap_or(0)
    }

    /// The key that peers use.
    pub(crate) fn remote_key(&self) -> u32 {
        // SAFETY: registered, and constant since.
        unsafe { self.raw.as_ref() }.rkey
    }

    /// The key that the own device uses.
    pub(super) fn local_key(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.raw.as_ref() }.lkey
    }

    /// The address of a range, if it lies inside.
    pub(super) fn range(&self, offset: usize, length: usize) -> Option<u64> {
        let end = offset.checked_add(length)?;
        if end > self.bytes {
            return None;
        }
        self.address().checked_add(u64::try_from(offset).ok()?)
    }
}

// SAFETY: mapped, from a page on, as long as the pages are there, which this keeps. Threads of this
// process touch them through core's types; devices keep the rules of block memory.
unsafe impl BlockPages for MemoryRegion {
    fn base(&self) -> NonNull<u8> {
        self.pages.base
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // SAFETY: released once; the pages live until after.
        unsafe { ibv_dereg_mr(self.raw.as_ptr()) };
    }
}
