//! Protection domains, and registered memory.

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use tramontane_core::memory::BlockPages;

use super::{Context, Pages, context};
#[cfg(feature = "fake")]
use crate::fake;
use crate::ffi;

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
        /// Windows may be bound to it.
        const BIND_WINDOWS = 1 << 4;
    }
}

/// What keeps queue pairs from memory that is not theirs. A clone is the same one.
#[derive(Clone, Debug)]
pub(crate) struct ProtectionDomain {
    inner: Inner,
}

#[derive(Clone, Debug)]
pub(super) enum Inner {
    Library(Arc<ffi::ProtectionDomain>),
    #[cfg(feature = "fake")]
    Fake(fake::ProtectionDomain),
}

impl ProtectionDomain {
    /// A new one.
    pub(crate) fn new(context: &Context) -> io::Result<Self> {
        let inner = match context.inner() {
            context::Inner::Library(context) => {
                Inner::Library(Arc::new(ffi::ProtectionDomain::new(context)?))
            }
            #[cfg(feature = "fake")]
            context::Inner::Fake(context) => Inner::Fake(fake::ProtectionDomain::new(context)?),
        };
        Ok(Self { inner })
    }

    pub(super) const fn inner(&self) -> &Inner {
        &self.inner
    }
}

/// A registered range of pages, from their start.
#[derive(Debug)]
pub struct MemoryRegion {
    // First: the registration ends before the pages.
    registration: Registration,
    pages: Arc<Pages>,
    bytes: usize,
    access: Access,
    local_key: u32,
    remote_key: u32,
}

/// What ends the registration when it is dropped.
#[derive(Debug)]
pub(super) enum Registration {
    Library(ffi::Registration),
    #[cfg(feature = "fake")]
    Fake(fake::Registration),
}

impl MemoryRegion {
    /// Registers the first `bytes` of some pages.
    pub(crate) fn new(
        domain: &ProtectionDomain,
        pages: &Arc<Pages>,
        bytes: usize,
        access: Access,
    ) -> io::Result<Self> {
        let (registration, local_key, remote_key) = match domain.inner() {
            Inner::Library(domain) => {
                let made = ffi::Registration::new(domain, pages, bytes, access)?;
                let keys = (made.local_key(), made.remote_key());
                (Registration::Library(made), keys.0, keys.1)
            }
            #[cfg(feature = "fake")]
            Inner::Fake(domain) => {
                let made = fake::Registration::new(domain, pages, bytes, access)?;
                let keys = (made.local_key(), made.remote_key());
                (Registration::Fake(made), keys.0, keys.1)
            }
        };
        let pages = Arc::clone(pages);
        Ok(Self { registration, pages, bytes, access, local_key, remote_key })
    }

    /// Ends it. When this returns, its keys are worth nothing, and nothing more of what used them
    /// lands.
    ///
    /// # Errors
    /// Then the keys may work still.
    pub(crate) fn end(self) -> io::Result<()> {
        match self.registration {
            Registration::Library(registration) => registration.end(),
            #[cfg(feature = "fake")]
            Registration::Fake(registration) => {
                drop(registration);
                Ok(())
            }
        }
    }

    /// What a window is bound to.
    pub(super) const fn registration(&self) -> &Registration {
        &self.registration
    }

    /// How many bytes are registered.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What it was registered for.
    pub(crate) const fn access(&self) -> Access {
        self.access
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
        u64::try_from(self.pages.base().as_ptr().expose_provenance()).unwrap_or(0)
    }

    /// The key that peers use.
    pub(crate) const fn remote_key(&self) -> u32 {
        self.remote_key
    }

    /// A range of it, as the own device names it; none if it does not lie inside.
    #[inline]
    pub(super) fn range(&self, offset: usize, length: usize) -> Option<LocalRange<'_>> {
        let end = offset.checked_add(length)?;
        if end > self.bytes {
            return None;
        }
        Some(LocalRange {
            address: self.address().checked_add(u64::try_from(offset).ok()?)?,
            length: u32::try_from(length).ok()?,
            local_key: self.local_key,
            region: PhantomData,
        })
    }
}

/// A range inside a registration, which lives as long as this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalRange<'r> {
    address: u64,
    length: u32,
    local_key: u32,
    region: PhantomData<&'r MemoryRegion>,
}

impl LocalRange<'_> {
    /// Where it begins.
    pub(crate) const fn address(&self) -> u64 {
        self.address
    }

    /// How many bytes it has.
    pub(crate) const fn length(&self) -> u32 {
        self.length
    }

    /// The key of its registration.
    pub(crate) const fn local_key(&self) -> u32 {
        self.local_key
    }
}

// SAFETY: mapped, from a page on, as long as the pages are there, which this keeps. Threads of this
// process touch them through core's types; devices keep the rules of block memory.
unsafe impl BlockPages for MemoryRegion {
    fn base(&self) -> NonNull<u8> {
        self.pages.base()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
