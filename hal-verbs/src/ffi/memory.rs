//! Protection domains and registrations.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::libibverbs::{ibv_alloc_pd, ibv_dealloc_pd, ibv_dereg_mr, ibv_mr, ibv_pd, ibv_reg_mr};

use super::{Context, check, last_error};
use crate::adapter::{Access, Pages};

/// A protection domain, which separates queue pairs from memory that does not belong to them.
#[derive(Debug)]
pub(crate) struct ProtectionDomain {
    raw: NonNull<ibv_pd>,
    _context: Arc<Context>,
}

// SAFETY: libibverbs may be called on one domain from several threads.
unsafe impl Send for ProtectionDomain {}
// SAFETY: as for `Send`.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// Allocates a protection domain.
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
        // SAFETY: the domain is freed once; all objects that held it have been destroyed.
        unsafe { ibv_dealloc_pd(self.raw()) };
    }
}

/// A registered range of some pages.
#[derive(Debug)]
pub(crate) struct Registration {
    raw: NonNull<ibv_mr>,
    is_ended: bool,
    _domain: Arc<ProtectionDomain>,
    _pages: Arc<Pages>,
}

// SAFETY: after registration, the struct contains plain numbers; the memory is released once.
unsafe impl Send for Registration {}
// SAFETY: as for `Send`.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers a range of some pages, which must be within them.
    pub(crate) fn new(
        domain: &Arc<ProtectionDomain>,
        pages: &Arc<Pages>,
        range: Range<usize>,
        access: Access,
    ) -> io::Result<Self> {
        if range.start > range.end || range.end > pages.bytes() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = i32::try_from(access.bits()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the range is within the pages, which are mapped, and kept alive by `pages` below
        // until this is released.
        let raw = unsafe {
            let first = pages.base().add(range.start);
            ibv_reg_mr(domain.raw(), first.as_ptr().cast(), range.len(), flags)
        };
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        Ok(Self { raw, is_ended: false, _domain: Arc::clone(domain), _pages: Arc::clone(pages) })
    }

    /// Deregisters the memory. After an error, its keys may still be valid, so the pages are then
    /// never released.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.is_ended = true;
        // SAFETY: the registration is released once, because drop below checks; the pages exist
        // until after the call.
        let ended = check(unsafe { ibv_dereg_mr(self.raw.as_ptr()) });
        if ended.is_err() {
            std::mem::forget(self);
        }
        ended
    }

    /// Returns the key that peers use.
    pub(crate) fn remote_key(&self) -> u32 {
        // SAFETY: the memory is registered, and the field has been constant since.
        unsafe { self.raw.as_ref() }.rkey
    }

    /// Returns the key that the local device uses.
    pub(crate) fn local_key(&self) -> u32 {
        // SAFETY: the memory is registered, and the field has been constant since.
        unsafe { self.raw.as_ref() }.lkey
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.is_ended {
            // SAFETY: the registration is released once; the pages exist until after the call.
            unsafe { ibv_dereg_mr(self.raw.as_ptr()) };
        }
    }
}
