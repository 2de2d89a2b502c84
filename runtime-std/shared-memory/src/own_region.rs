//! The own memory that peers map: block memory and regions.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use tramontane_core::fabric::Area;
use tramontane_core::memory::BlockPages;

use super::header::{HEADER_BYTES, Header};
use super::map::Map;

/// Block memory or a region, as its owner and its owner's fabrics have it.
#[derive(Debug)]
pub struct OwnRegion {
    /// The number that no other memory of this process ever has.
    pub(super) serial: u64,
    pub(super) map: Map,
    pub(super) file: OwnedFd,
}

// SAFETY: mapped in one piece behind the header, writable, as long as the map lives. Other threads
// of this process touch it by atomic operations or under the promise of a slice; peers only read.
unsafe impl BlockPages for OwnRegion {
    fn base(&self) -> NonNull<u8> {
        // SAFETY: header and content are mapped in one piece.
        unsafe { self.map.base().add(HEADER_BYTES) }
    }

    fn bytes(&self) -> usize {
        self.map.bytes() - HEADER_BYTES
    }
}

impl Drop for OwnRegion {
    fn drop(&mut self) {
        Header::new(&self.map).set_over();
    }
}

/// A piece of the own block memory that a block is sent from, or goes to.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) memory: Arc<OwnRegion>,
    pub(super) offset: usize,
    pub(super) length: usize,
}

impl Range {
    /// A range, if it is inside.
    pub(super) fn new(memory: Arc<OwnRegion>, area: Area, length: usize) -> Option<Self> {
        memory.at(area.offset, length).ok()?;
        Some(Self { memory, offset: area.offset, length })
    }
}
