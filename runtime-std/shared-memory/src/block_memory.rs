//! Block memory, from which blocks are sent and into which they are received.
//!
//! Each region is sealed memory. Its owner maps it writable. Peers that receive blocks from it map
//! it read-only, and receive its descriptor before the first block. A process never reuses a serial
//! number, so no peer mistakes a new region for an old one.
//!
//! # Invariants
//! - A region's number belongs to one memory at a time. It becomes free again when the memory is
//!   freed.
//! - Memory that a fabric still uses (for a posted receive, or a block that has not been sent yet)
//!   is kept until that use is over, even if its owner drops it.
//! - Memory that a peer has mapped stays valid for that peer.

use std::os::fd::AsFd as _;
use std::ptr::NonNull;
use std::sync::Arc;

use tramontane_core::fabric::{self, BlockUse, Region};
use tramontane_core::ids::ViewId;
use tramontane_core::memory::OutOfBlock;

use super::descriptors::Subject;
use super::error::Error;
use super::header::{HEADER_BYTES, Header};
use super::map::Map;
use super::own_region::OwnRegion;
use super::peer::Peer;
use super::residence::Residence;
use super::sealed::{SealedMemory, Writers};
use super::space::{check_space, whole_pages};

/// Block memory of this process.
pub type SharedBlockMemory = tramontane_core::memory::BlockMemory<Arc<OwnRegion>>;

/// Allocates block memory for a process in a group. The process's fabric can use the memory from
/// then on. Any thread may have a store.
#[derive(Clone, Debug)]
pub struct SharedBlockStore(Arc<Residence>);

impl SharedBlockStore {
    pub(super) fn new(residence: &Arc<Residence>) -> Self {
        Self(Arc::clone(residence))
    }
}

impl fabric::BlockStore for SharedBlockStore {
    type Pages = Arc<OwnRegion>;
    type Error = Error;

    /// # Errors
    /// Returns [`Error::TooManyRegions`], [`Error::NoMemory`] or [`Error::HasLeft`]. Nothing is
    /// left behind in these cases.
    fn memory(&self, bytes: usize, _: BlockUse) -> Result<SharedBlockMemory, Error> {
        let whole = bytes.saturating_add(HEADER_BYTES);
        check_space(whole_pages(std::iter::once(whole)), || 0)?;
        let own = self.0.make_memory(whole)?;
        Ok(SharedBlockMemory::new(self.0.take_region(&own)?, own))
    }
}

impl OwnRegion {
    /// Sends the memory's descriptor to a peer for blocks in a view. Returns false if it must be
    /// sent again later.
    pub(super) fn send_to(
        &self,
        residence: &Residence,
        peer: &Peer,
        view: ViewId,
    ) -> rustix::io::Result<bool> {
        let subject = Subject::Block { view, serial: self.serial };
        residence.send(peer, subject, self.file.as_fd())
    }

    /// Sends the descriptor of a region's memory, which is part of all views. Returns false if it
    /// must be sent again later.
    pub(super) fn send_region_to(
        &self,
        residence: &Residence,
        peer: &Peer,
        region: Region,
    ) -> rustix::io::Result<bool> {
        let subject = Subject::Region { region, serial: self.serial };
        residence.send(peer, subject, self.file.as_fd())
    }
}

impl Residence {
    /// Allocates signed memory of this process that peers may map.
    pub(super) fn make_memory(&self, bytes: usize) -> Result<Arc<OwnRegion>, Error> {
        if self.has_left() {
            return Err(Error::HasLeft { node: self.node() });
        }
        let SealedMemory { file, map } = SealedMemory::new_large(bytes, Writers::Owner)?;
        let serial = self.next_serial();
        Header::new(&map).write(&self.maker(serial));
        Ok(Arc::new(OwnRegion { serial, map, file }))
    }
}

/// A peer's block memory, as this process reads it.
#[derive(Debug)]
pub(super) struct PeerRegion {
    pub(super) serial: u64,
    map: Map,
}

impl PeerRegion {
    /// Wraps the mapping of memory received from a peer.
    pub(super) const fn new(serial: u64, map: Map) -> Self {
        Self { serial, map }
    }

    /// Returns the address of a range if it is inside the region.
    pub(super) fn at(&self, offset: u64, length: usize) -> Result<NonNull<u8>, OutOfBlock> {
        let offset = usize::try_from(offset).map_err(|_| OutOfBlock)?;
        let end = offset.checked_add(length).ok_or(OutOfBlock)?;
        if end > self.map.bytes() - HEADER_BYTES {
            return Err(OutOfBlock);
        }
        // SAFETY: the check excludes an address past the end. The range follows the header, which
        // is part of the same mapping.
        Ok(unsafe { self.map.base().add(HEADER_BYTES + offset) })
    }

    /// Returns whether the owner has given up the memory.
    pub(super) fn is_over(&self) -> bool {
        Header::new(&self.map).is_over()
    }
}
