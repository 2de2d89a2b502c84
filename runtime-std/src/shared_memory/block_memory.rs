//! Block memory: what blocks are sent from and received into, in files of its own.
//!
//! A file a region, mapped writable by its owner and read-only by the peers that it sends blocks to, who find it at the
//! first block. It is made and signed as rows are: allocated whole before it is touched, never truncated, cleared away
//! with its owner. Its number is never used twice by a process, so that no peer takes a new one for an old.
//!
//! # Invariants
//! - A region's number belongs to one memory at a time; it is free again when the memory is gone.
//! - A memory that a fabric still uses (a receive is posted into it, or a block of it is not sent) stays, with its name,
//!   until that is over, whatever its owner drops.
//! - What peers have mapped stays with them as it was.

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustix::fs::{FileType, fstat, ftruncate};
use rustix::io::Errno;
use tramontane_core::fabric::Region;

use super::error::Error;
use super::files::Names;
use super::folder::{Folder, Patience};
use super::header::{HEADER_BYTES, Header, State};
use super::map::{Access, Map};
use super::peer::Peer;
use super::residence::Residence;
use super::space::{allocate, check_space, file_bytes};
use crate::block_range::{OutOfMemory, check};

/// Block memories that a process may have at a time.
pub const REGIONS_MAX: u16 = 1024;

/// Block memory of this process: the owner's handle. The memory goes when this is dropped, and no fabric uses it.
///
/// A fabric takes blocks from it, and puts them into it, once it was lent
/// ([`SharedMemory::lend_blocks`](super::SharedMemory::lend_blocks)).
#[derive(Debug)]
pub struct BlockMemory {
    own: Arc<OwnRegion>,
}

impl BlockMemory {
    /// The region by which a fabric knows it.
    #[must_use]
    pub fn region(&self) -> Region {
        self.own.region
    }

    /// How many bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.own.bytes()
    }

    /// The first byte. It starts on a page.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.own.base()
    }

    /// Copies bytes out. A range that a block is just coming into yields some mix.
    ///
    /// # Errors
    /// If the range is not inside.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfMemory> {
        let source = self.own.at(offset, into.len())?;
        // SAFETY: in range by the check, and mapped while `self` lives; `into` is exclusive, so they do not overlap.
        unsafe { source.copy_to_nonoverlapping(NonNull::from(&mut *into).cast(), into.len()) };
        Ok(())
    }

    /// Copies bytes in. Not into a range that is being sent: peers would get some mix.
    ///
    /// # Errors
    /// If the range is not inside.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), OutOfMemory> {
        let target = self.own.at(offset, bytes.len())?;
        // SAFETY: in range by the check, and mapped writable while `self` lives; no reference to it is held, by the
        // promise of `slice` and `slice_mut`, so they do not overlap.
        unsafe { target.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        Ok(())
    }

    /// A range as it is, without a copy.
    ///
    /// # Errors
    /// If the range is not inside.
    ///
    /// # Safety
    /// While the slice is there: nothing is written to the range, and no receive is posted into it that may still be
    /// filled.
    pub unsafe fn slice(&self, offset: usize, length: usize) -> Result<&[u8], OutOfMemory> {
        let base = self.own.at(offset, length)?;
        // SAFETY: in range by the check, and mapped while `self` lives; not written meanwhile, by the caller's promise.
        Ok(unsafe { std::slice::from_raw_parts(base.as_ptr(), length) })
    }

    /// A range to be filled in place.
    ///
    /// # Errors
    /// If the range is not inside.
    ///
    /// # Safety
    /// While the slice is there: nobody else of this process reads or writes the range, no receive is posted into it
    /// that may still be filled, and no block of it is being sent.
    pub unsafe fn slice_mut(
        &mut self,
        offset: usize,
        length: usize,
    ) -> Result<&mut [u8], OutOfMemory> {
        let base = self.own.at(offset, length)?;
        // SAFETY: in range by the check, and mapped writable while `self` lives; nobody else touches it meanwhile, by
        // the caller's promise.
        Ok(unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), length) })
    }

    pub(super) fn own(&self) -> &Arc<OwnRegion> {
        &self.own
    }
}

/// Block memory, as its owner and its owner's fabrics have it.
#[derive(Debug)]
pub(super) struct OwnRegion {
    pub(super) region: Region,
    /// The number that no other memory of this process ever has.
    pub(super) serial: u64,
    map: Map,
    residence: Arc<Residence>,
    name: CString,
}

impl OwnRegion {
    pub(super) fn bytes(&self) -> usize {
        self.map.bytes() - HEADER_BYTES
    }

    fn base(&self) -> NonNull<u8> {
        // SAFETY: header and content are mapped in one piece.
        unsafe { self.map.base().add(HEADER_BYTES) }
    }

    /// Whether a process's place in the group is the one that made it.
    pub(super) fn is_of(&self, residence: &Arc<Residence>) -> bool {
        Arc::ptr_eq(&self.residence, residence)
    }

    /// The address of a range, if it is inside.
    pub(super) fn at(&self, offset: usize, length: usize) -> Result<NonNull<u8>, OutOfMemory> {
        check(offset, length, self.bytes())?;
        // SAFETY: not past the end, by the check.
        Ok(unsafe { self.base().add(offset) })
    }
}

impl Drop for OwnRegion {
    fn drop(&mut self) {
        Header::new(&self.map).set_state(State::Left);
        self.residence.remove_file(&self.name);
        self.residence.free_region(self.region);
    }
}

impl Residence {
    /// Makes block memory: so many bytes, all zero, in a file of its own. May take a while if there are many; waits for
    /// nobody.
    ///
    /// # Errors
    /// [`Error::TooManyRegions`] if there are [`REGIONS_MAX`]; [`Error::NoSpace`]; [`Error::HasLeft`]. Nothing is left
    /// behind then.
    pub fn block_memory(self: &Arc<Self>, bytes: usize) -> Result<BlockMemory, Error> {
        let whole = bytes.saturating_add(HEADER_BYTES);
        check_space(&self.folder, file_bytes(std::iter::once(whole)), |_| false)?;
        let region = self.take_region()?;
        self.make_region(region, whole).inspect_err(|_| self.free_region(region))
    }

    fn make_region(self: &Arc<Self>, region: Region, bytes: usize) -> Result<BlockMemory, Error> {
        let path = self.folder.path();
        let (name, serial, file) = loop {
            let serial = self.next_serial();
            let name = Names::block(self.node(), serial);
            match self.make_file(&name) {
                None => return Err(Error::HasLeft { node: self.node() }),
                // Whatever lies there is not this process's, and the next number is as good.
                Some(Err(Errno::EXIST)) => {}
                Some(Err(errno)) => {
                    return Err(Error::from_errno("cannot create a file in", path, errno));
                }
                Some(Ok(file)) => break (name, serial, file),
            }
        };
        let made = self.fill_region(&file, bytes, serial).inspect_err(|_| self.remove_file(&name));
        let own = OwnRegion { region, serial, map: made?, residence: Arc::clone(self), name };
        Ok(BlockMemory { own: Arc::new(own) })
    }

    fn fill_region(&self, file: &OwnedFd, bytes: usize, serial: u64) -> Result<Map, Error> {
        let failed = |errno| Error::from_errno("cannot map a file of", self.folder.path(), errno);
        // Mapped before it is allocated: huge pages are given to a mapping that asked for them, not to a file.
        let length = u64::try_from(bytes).unwrap_or(u64::MAX);
        ftruncate(file, length).map_err(failed)?;
        let map = Map::new_large(file.as_fd(), bytes, Access::Write).map_err(failed)?;
        let never = AtomicBool::new(false);
        allocate(&self.folder, file, bytes, &Patience { until: Instant::now(), cancel: &never })?;
        Header::new(&map).write(&self.identity(serial));
        Header::new(&map).set_state(State::Running);
        Ok(map)
    }
}

/// A peer's block memory, as this process reads it.
#[derive(Debug)]
pub(super) struct PeerRegion {
    pub(super) serial: u64,
    map: Map,
}

impl PeerRegion {
    /// Maps a peer's block memory. None if it is not there, or is not what that process can have made.
    pub(super) fn find(
        folder: &Folder,
        peer: &Peer,
        serial: u64,
    ) -> rustix::io::Result<Option<Self>> {
        let Some(file) = folder.open_row(&Names::block(peer.id(), serial))? else {
            return Ok(None);
        };
        let stat = fstat(&file)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let Some(bytes) =
            usize::try_from(stat.st_size).ok().filter(|bytes| is_file && *bytes >= HEADER_BYTES)
        else {
            return Ok(None);
        };
        let first = Map::new(file.as_fd(), HEADER_BYTES, Access::Read)?;
        let header = Header::new(&first);
        let is_theirs = header.is_written()
            && header.is_of_this_format()
            && header.node() == u64::from(peer.id().get())
            && header.incarnation() == peer.incarnation()
            && header.digest() == serial;
        if !is_theirs {
            return Ok(None);
        }
        Ok(Some(Self { serial, map: Map::new_large(file.as_fd(), bytes, Access::Read)? }))
    }

    /// The address of a range, if it is inside.
    pub(super) fn at(&self, offset: u64, length: usize) -> Result<NonNull<u8>, OutOfMemory> {
        let offset = usize::try_from(offset).map_err(|_| OutOfMemory)?;
        check(offset, length, self.map.bytes() - HEADER_BYTES)?;
        // SAFETY: not past the end, by the check; behind the header, which is mapped in the same piece.
        Ok(unsafe { self.map.base().add(HEADER_BYTES + offset) })
    }

    /// Whether its owner has given it up.
    pub(super) fn is_over(&self) -> bool {
        Header::new(&self.map).state().is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory::mounted::Mounted;
    use crate::shared_memory::root::{GroupName, Root};

    /// What the check beforehand cannot see: that others allocate at the same time.
    #[test]
    fn memory_that_is_not_there_after_all_is_an_error_and_leaves_nothing() {
        let Some(place) = Mounted::new("blocks") else {
            println!("skipped: this user may not mount a small file system");
            return;
        };
        let (root, group) = (Root::under(place.path()), GroupName::new("late").expect("a name"));
        let limit = std::time::Duration::from_secs(9);
        let never = AtomicBool::new(false);
        let residence =
            Residence::claim(&root, &group, tramontane_core::ids::NodeId(1), 1, 1, limit, &never);
        let residence = Arc::new(residence.expect("a place"));
        let region = residence.take_region().expect("the first");
        let error = residence.make_region(region, 2 << 20).expect_err("two of one MiB");
        assert!(
            matches!(error, Error::NoSpace { needed, free, .. } if needed == 2 << 20 && free < 1 << 20),
            "{error}"
        );
        residence.free_region(region);
        let memory = residence.block_memory(1 << 18).expect("what is left is free");
        assert_eq!(memory.region(), region);
        assert!(matches!(residence.block_memory(1 << 20), Err(Error::NoSpace { .. })));
        drop((memory, residence));
        assert!(!root.path().exists());
    }
}
