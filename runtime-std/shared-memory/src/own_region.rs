//! The memory of this process that peers map: block memory and regions.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use tramontane_core::fabric::Area;
use tramontane_core::memory::BlockPages;

use super::header::{HEADER_BYTES, Header};
use super::map::Map;

/// Block memory or a region, shared by its owner and the owner's fabrics.
#[derive(Debug)]
pub struct OwnRegion {
    /// A number that no other memory of this process ever has.
    pub(super) serial: u64,
    pub(super) map: Map,
    pub(super) file: OwnedFd,
}

// SAFETY: header and content are mapped in one piece, writable, as long as the map lives. Other
// threads of this process access it by atomic operations or under the promise of a slice. Peers
// only read.
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

/// A part of the local block memory from which a block is sent, or into which it is received.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) memory: Arc<OwnRegion>,
    pub(super) offset: usize,
    pub(super) length: usize,
}

impl Range {
    /// Creates a range, if it is inside the memory.
    pub(super) fn new(memory: Arc<OwnRegion>, area: Area, length: usize) -> Option<Self> {
        memory.at(area.offset, length).ok()?;
        Some(Self { memory, offset: area.offset, length })
    }
}
