//! Memory windows of type 2.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::libibverbs::{ibv_alloc_mw, ibv_dealloc_mw, ibv_mw, ibv_mw_type};
use super::{ProtectionDomain, check, last_error};

/// A window.
#[derive(Debug)]
pub(crate) struct MemoryWindow {
    raw: NonNull<ibv_mw>,
    is_ended: bool,
    first_key: u32,
    _domain: Arc<ProtectionDomain>,
}

// SAFETY: libibverbs may be called on one window from several threads.
unsafe impl Send for MemoryWindow {}
// SAFETY: as above; nothing here changes through a shared reference.
unsafe impl Sync for MemoryWindow {}

impl MemoryWindow {
    /// A new one, which is not bound.
    pub(crate) fn new(domain: &Arc<ProtectionDomain>) -> io::Result<Self> {
        // SAFETY: the domain lives.
        let raw = unsafe { ibv_alloc_mw(domain.raw(), ibv_mw_type::IBV_MW_TYPE_2) };
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        // SAFETY: just made.
        let first_key = unsafe { raw.as_ref() }.rkey;
        Ok(Self { raw, is_ended: false, first_key, _domain: Arc::clone(domain) })
    }

    /// The key that it was made with.
    pub(crate) const fn first_key(&self) -> u32 {
        self.first_key
    }

    /// Ends it. Without success its key may work still.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.is_ended = true;
        // SAFETY: ended once, as the drop below sees; the domain lives until after.
        check(unsafe { ibv_dealloc_mw(self.raw.as_ptr()) })
    }

    pub(super) const fn raw(&self) -> *mut ibv_mw {
        self.raw.as_ptr()
    }
}

impl Drop for MemoryWindow {
    fn drop(&mut self) {
        if !self.is_ended {
            // SAFETY: ended once; the domain lives until after.
            unsafe { ibv_dealloc_mw(self.raw.as_ptr()) };
        }
    }
}
