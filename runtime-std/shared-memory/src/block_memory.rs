//! Block memory: what blocks are sent from and received into, in files of its own.
//!
//! A file a region, mapped writable by its owner and read-only by the peers that it sends blocks
//! to, who find it at the first block. It is made and signed as rows are: allocated whole before it
//! is touched, never truncated, cleared away with its owner. Its number is never used twice by a
//! process, so that no peer takes a new one for an old.
//!
//! # Invariants
//! - A region's number belongs to one memory at a time; it is free again when the memory is gone.
//! - A memory that a fabric still uses (a receive is posted into it, or a block of it is not sent)
//!   stays, with its name, until that is over, whatever its owner drops.
//! - What peers have mapped stays with them as it was.

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustix::fs::{FileType, fstat, ftruncate};
use rustix::io::Errno;
use tramontane_core::fabric::{self, BlockUse};
use tramontane_core::memory::{BlockPages, OutOfBlock};

use super::error::Error;
use super::files::Names;
use super::folder::{Folder, Patience};
use super::header::{HEADER_BYTES, Header, State};
use super::map::{Access, Map};
use super::peer::Peer;
use super::residence::Residence;
use super::space::{allocate, check_space, file_bytes};

/// Block memory of this process.
pub type BlockMemory = tramontane_core::memory::BlockMemory<Arc<OwnRegion>>;

/// Makes block memory for one process's place in a group, which its fabric knows from then on. Any
/// thread may have one.
#[derive(Clone, Debug)]
pub struct BlockStore(Arc<Residence>);

impl BlockStore {
    pub(super) fn new(residence: &Arc<Residence>) -> Self {
        Self(Arc::clone(residence))
    }
}

impl fabric::BlockStore for BlockStore {
    type Pages = Arc<OwnRegion>;
    type Error = Error;

    /// In a file of its own.
    ///
    /// # Errors
    /// [`Error::TooManyRegions`]; [`Error::NoSpace`]; [`Error::HasLeft`]. Nothing is left behind
    /// then.
    fn memory(&self, bytes: usize, _: BlockUse) -> Result<BlockMemory, Error> {
        let whole = bytes.saturating_add(HEADER_BYTES);
        check_space(&self.0.folder, file_bytes(std::iter::once(whole)), |_| false)?;
        self.0.make_region(whole)
    }
}

/// Block memory, as its owner and its owner's fabrics have it.
#[derive(Debug)]
pub struct OwnRegion {
    /// The number that no other memory of this process ever has.
    pub(super) serial: u64,
    map: Map,
    residence: Arc<Residence>,
    name: CString,
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
        Header::new(&self.map).set_state(State::Left);
        self.residence.remove_file(&self.name);
    }
}

impl Residence {
    fn make_region(self: &Arc<Self>, bytes: usize) -> Result<BlockMemory, Error> {
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
        let own = OwnRegion { serial, map: made?, residence: Arc::clone(self), name };
        let own = Arc::new(own);
        Ok(BlockMemory::new(self.take_region(&own)?, own))
    }

    fn fill_region(&self, file: &OwnedFd, bytes: usize, serial: u64) -> Result<Map, Error> {
        let failed = |errno| Error::from_errno("cannot map a file of", self.folder.path(), errno);
        // Mapped before it is allocated: huge pages are given to a mapping that asked for them, not
        // to a file.
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
    /// Maps a peer's block memory. None if it is not there, or is not what that process can have
    /// made.
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
    pub(super) fn at(&self, offset: u64, length: usize) -> Result<NonNull<u8>, OutOfBlock> {
        let offset = usize::try_from(offset).map_err(|_| OutOfBlock)?;
        let end = offset.checked_add(length).ok_or(OutOfBlock)?;
        if end > self.map.bytes() - HEADER_BYTES {
            return Err(OutOfBlock);
        }
        // SAFETY: not past the end, by the check; behind the header, which is mapped in the same
        // piece.
        Ok(unsafe { self.map.base().add(HEADER_BYTES + offset) })
    }

    /// Whether its owner has given it up.
    pub(super) fn is_over(&self) -> bool {
        Header::new(&self.map).state().is_over()
    }
}

#[cfg(test)]
mod tests {
    use tramontane_core::fabric::{BlockStore as _, Region};

    use super::*;
    use crate::mounted::Mounted;
    use crate::root::{GroupName, Root};

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
        let error = residence.make_region(2 << 20).expect_err("two of one MiB");
        assert!(
            matches!(
                error,
                Error::NoSpace { needed, free, .. } if needed == 2 << 20 && free < 1 << 20
            ),
            "{error}"
        );
        let store = BlockStore::new(&residence);
        let memory = store.memory(1 << 18, BlockUse::Both).expect("what is left is free");
        assert_eq!(memory.region(), Region(1));
        assert!(matches!(store.memory(1 << 20, BlockUse::Both), Err(Error::NoSpace { .. })));
        drop((memory, store, residence));
        assert!(!root.path().exists());
    }
}
