//! Memory windows of type 2: keys that are given and taken back by requests, and not by the kernel.

use std::io;
use std::sync::Arc;

use super::{Access, MemoryRegion, ProtectionDomain, memory};
#[cfg(feature = "fake")]
use crate::fake;
use crate::ffi;

/// A window. It is bound by [`SendList::push_bind`] and taken back by
/// [`SendList::push_invalidate`].
///
/// [`SendList::push_bind`]: super::SendList::push_bind
/// [`SendList::push_invalidate`]: super::SendList::push_invalidate
#[derive(Debug)]
pub(crate) struct MemoryWindow {
    // First: a window ends before the region that it is bound to.
    inner: Inner,
    region: Option<Arc<MemoryRegion>>,
    key: u32,
}

#[derive(Debug)]
pub(super) enum Inner {
    Library(ffi::MemoryWindow),
    #[cfg(feature = "fake")]
    Fake(fake::MemoryWindow),
}

/// What a window is bound to, and what peers may do there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bind<'l> {
    pub(crate) region: &'l Arc<MemoryRegion>,
    pub(crate) offset: usize,
    pub(crate) length: usize,
    pub(crate) access: Access,
}

impl MemoryWindow {
    /// A new one, which is not bound.
    ///
    /// # Errors
    /// Also if the device has no windows.
    pub(crate) fn new(domain: &ProtectionDomain) -> io::Result<Self> {
        let (inner, key) = match domain.inner() {
            memory::Inner::Library(domain) => {
                let made = ffi::MemoryWindow::new(domain)?;
                let key = made.first_key();
                (Inner::Library(made), key)
            }
            #[cfg(feature = "fake")]
            memory::Inner::Fake(domain) => {
                let made = fake::MemoryWindow::new(domain)?;
                let key = made.first_key();
                (Inner::Fake(made), key)
            }
        };
        Ok(Self { inner, region: None, key })
    }

    /// The key that it was bound under last.
    pub(crate) const fn key(&self) -> u32 {
        self.key
    }

    /// Lets go of the region that it was bound to. Only once the request that took its key back is
    /// done: until then the region must stay.
    pub(crate) fn release(&mut self) {
        self.region = None;
    }

    /// Ends it. When this returns, its key is worth nothing, and nothing more of what used it
    /// lands.
    ///
    /// # Errors
    /// Then the key may work still.
    pub(crate) fn end(self) -> io::Result<()> {
        match self.inner {
            Inner::Library(window) => window.end(),
            #[cfg(feature = "fake")]
            Inner::Fake(window) => {
                drop(window);
                Ok(())
            }
        }
    }

    pub(super) const fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The key of the next bind: the lowest byte is the holder's to choose, and after 256 binds
    /// comes again.
    pub(crate) const fn next_key(&self) -> u32 {
        (self.key & !0xff) | (self.key.wrapping_add(1) & 0xff)
    }

    pub(super) fn bound(&mut self, to: &Arc<MemoryRegion>, key: u32) {
        self.region = Some(Arc::clone(to));
        self.key = key;
    }
}
