//! Protection domains, and registered memory.

use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use tramontane_core::memory::BlockPages;

use super::{Access, Context, LocalRange, Pages, context};
#[cfg(feature = "fake")]
use crate::fake;
use crate::ffi;

/// A protection domain, which separates queue pairs from memory that does not belong to them. A
/// clone refers to the same domain.
#[derive(Clone, Debug)]
pub(crate) struct ProtectionDomain {
    inner: AnyProtectionDomain,
}

#[derive(Clone, Debug)]
pub(super) enum AnyProtectionDomain {
    Library(Arc<ffi::ProtectionDomain>),
    #[cfg(feature = "fake")]
    Fake(fake::ProtectionDomain),
}

impl ProtectionDomain {
    /// Allocates a protection domain.
    pub(crate) fn new(context: &Context) -> io::Result<Self> {
        let inner = match context.inner() {
            context::Inner::Library(context) => {
                AnyProtectionDomain::Library(Arc::new(ffi::ProtectionDomain::new(context)?))
            }
            #[cfg(feature = "fake")]
            context::Inner::Fake(context) => {
                AnyProtectionDomain::Fake(fake::ProtectionDomain::new(context)?)
            }
        };
        Ok(Self { inner })
    }

    pub(super) const fn inner(&self) -> &AnyProtectionDomain {
        &self.inner
    }
}

/// A registered range of memory.
#[derive(Debug)]
pub struct MemoryRegion {
    // This field is the first, so that the registration ends before the pages are released.
    registration: Registration,
    pages: Arc<Pages>,
    /// Offset of the range in its pages.
    start: usize,
    bytes: usize,
    access: Access,
    local_key: u32,
    remote_key: u32,
}

/// The registration, which is ended when this is dropped.
#[derive(Debug)]
pub(super) enum Registration {
    Library(ffi::Registration),
    #[cfg(feature = "fake")]
    Fake(fake::Registration),
}

impl MemoryRegion {
    /// Registers the first `bytes` bytes of some pages.
    pub(crate) fn new(
        domain: &ProtectionDomain,
        pages: &Arc<Pages>,
        bytes: usize,
        access: Access,
    ) -> io::Result<Self> {
        Self::of_range(domain, pages, 0..bytes, access)
    }

    /// Registers a range of some pages.
    pub(crate) fn of_range(
        domain: &ProtectionDomain,
        pages: &Arc<Pages>,
        range: Range<usize>,
        access: Access,
    ) -> io::Result<Self> {
        let (start, bytes) = (range.start, range.len());
        let (registration, local_key, remote_key) = match domain.inner() {
            AnyProtectionDomain::Library(domain) => {
                let made = ffi::Registration::new(domain, pages, range, access)?;
                let keys = (made.local_key(), made.remote_key());
                (Registration::Library(made), keys.0, keys.1)
            }
            #[cfg(feature = "fake")]
            AnyProtectionDomain::Fake(domain) => {
                let made = fake::Registration::new(domain, pages, range, access)?;
                let keys = (made.local_key(), made.remote_key());
                (Registration::Fake(made), keys.0, keys.1)
            }
        };
        let pages = Arc::clone(pages);
        Ok(Self { registration, pages, start, bytes, access, local_key, remote_key })
    }

    /// Ends the registration. After this returns, its keys are invalid, and no write that uses them
    /// lands.
    ///
    /// # Errors
    /// After an error the keys may still be valid.
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

    /// Returns the number of registered bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the access rights of the registration.
    pub(crate) const fn access(&self) -> Access {
        self.access
    }

    /// Returns whether peers may write to the region.
    pub(crate) const fn may_be_written(&self) -> bool {
        self.access.contains(Access::REMOTE_WRITE)
    }

    /// Returns the pages that contain the region.
    pub(crate) const fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// Returns the address of the region's first byte, as peers use it.
    pub(crate) fn address(&self) -> u64 {
        // Addresses have at most 64 bits on every platform with RDMA.
        u64::try_from(self.base().as_ptr().expose_provenance()).unwrap_or(0)
    }

    /// Returns the key with which peers access the region.
    pub(crate) const fn remote_key(&self) -> u32 {
        self.remote_key
    }

    /// Returns a range of the region, as the local device addresses it, or `None` if it is out of
    /// bounds.
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

// SAFETY: mapped at a page boundary as long as the pages exist, which this keeps. Threads of this
// process access them through the core's types; devices keep the rules of block memory.
unsafe impl BlockPages for MemoryRegion {
    fn base(&self) -> NonNull<u8> {
        // SAFETY: the registration checked that the range is within the pages.
        unsafe { self.pages.base().add(self.start) }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
