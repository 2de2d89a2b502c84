//! The memory that a connection writes from and to.
//!
//! The connection of this member's own row also carries what this member passes on for a third
//! member (REL-1): from its copy of that member's row to the peer's copy. The peer registers the
//! rings of its copies once more for this member, and only the rings. So a relay that fails can
//! change the messages that it passes on, but no frontier of their sender.

use tramontane_core::fabric::{ErrorKind, Region, Write};
use tramontane_core::layout::RelayedRing;

use crate::adapter::{MemoryRegion, Target};

/// Local memory in the same domain that is not the connection's own. Writes may read from it, and
/// reads may fill it.
#[derive(Debug)]
pub(crate) struct OtherMemory {
    pub(crate) region: Region,
    pub(crate) memory: MemoryRegion,
    /// Length in bytes.
    pub(crate) bytes: usize,
}

/// Returns the memory of a region among others.
pub(super) fn memory_of(others: &[OtherMemory], region: Region) -> Option<&OtherMemory> {
    others.iter().find(|other| other.region == region)
}

/// Returns the address at an offset in the peer's memory.
pub(super) fn at(start: Target, offset: usize) -> Result<Target, ErrorKind> {
    let offset = u64::try_from(offset).map_err(|_| ErrorKind::OutOfRange)?;
    let address = start.address.checked_add(offset).ok_or(ErrorKind::OutOfRange)?;
    Ok(Target { address, key: start.key })
}

/// A ring in the peer's copy of a third member's row, and the address of its first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarRing {
    pub(crate) ring: RelayedRing,
    pub(crate) target: Target,
}

impl FarRing {
    /// Returns the peer's memory for a write, or `None` if the write is not one to this ring.
    pub(super) fn place(&self, write: &Write) -> Option<Target> {
        let Self { ring, target } = self;
        let owner = write.target.region.owner()?;
        let is_here = write.source == write.target
            && ring.contains(ring.from, owner, write.target.offset, write.length);
        if is_here { at(*target, write.target.offset - ring.offset).ok() } else { None }
    }
}

/// The peer's memory that one connection may write to.
#[derive(Clone, Copy)]
pub(super) struct Targets<'t> {
    pub(super) own: Target,
    pub(super) rings: &'t [FarRing],
}

impl Targets<'_> {
    /// Returns the peer's memory for a write.
    #[inline]
    pub(super) fn of(&self, write: &Write) -> Result<Target, ErrorKind> {
        if write.target.region.owner().is_none() {
            return at(self.own, write.target.offset);
        }
        self.rings.iter().find_map(|ring| ring.place(write)).ok_or(ErrorKind::OutOfRange)
    }
}

/// The local memory that one connection may write from.
#[derive(Clone, Copy)]
pub(super) struct Sources<'s> {
    /// The connection's own memory.
    pub(super) own: (Region, &'s MemoryRegion),
    /// Other memory in the same domain.
    pub(super) others: &'s [OtherMemory],
    /// The copies of the peers' rows, by rank, on a connection that passes on messages.
    pub(super) copies: &'s [Option<MemoryRegion>],
}

impl<'s> Sources<'s> {
    /// Returns the memory of a region.
    #[inline]
    pub(super) fn of(&self, region: Region) -> Result<&'s MemoryRegion, ErrorKind> {
        if region == self.own.0 {
            return Ok(self.own.1);
        }
        let memory = match region.owner() {
            Some(owner) => self.copies.get(owner.index()).and_then(Option::as_ref),
            None => memory_of(self.others, region).map(|other| &other.memory),
        };
        memory.ok_or(ErrorKind::OutOfRange)
    }
}
