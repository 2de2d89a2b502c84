//! `Permissions` and `HostRegions` over shared memory: the owner of a region applies the lists that
//! its peers post, under the right that each peer has at that moment.
//!
//! `write_queue` explains why rights are not revoked by removing mappings. A process's posts are
//! applied when the owner polls; an owner that is asleep is rung. A read has completed when the
//! call returns, because every peer maps every region.
//!
//! No call here allocates memory or makes a system call on the path of a list, except to wake a
//! sleeper. The first right that a peer grants in a view requires the memory of a queue, which is
//! allocated during a poll.

use std::sync::Arc;

use tramontane_core::fabric::{
    Area, ErrorKind, HostRegions, PermissionEvent, Permissions, Region, RegionMemory as _, Token,
};
use tramontane_core::ids::{Rank, ViewId};

use super::error::Error;
use super::fabric::{COMPLETIONS_MAX, SharedMemory};
use super::header::HEADER_BYTES;
use super::open_views::VIEWS_MAX;
use super::region_memory::{RegionIndex, SharedRegionMemory};
use super::residence::Residence;
use super::space::{check_space, whole_pages};
use super::write_queue::{list_bytes_max, ring_bytes};

impl SharedMemory {
    /// Returns the index of a local region.
    fn own_region(&self, region: Region) -> Result<RegionIndex, ErrorKind> {
        let index = RegionIndex::of(region).ok_or(ErrorKind::OutOfRange)?;
        self.own_regions[index.0].as_ref().map(|_| index).ok_or(ErrorKind::OutOfRange)
    }

    fn set_right(
        &mut self,
        (view, peer): (ViewId, Rank),
        region: Region,
        given: bool,
    ) -> Result<(), ErrorKind> {
        let region = self.own_region(region)?;
        self.views.get_mut(view).ok_or(ErrorKind::Other)?.set_right(peer, region, given)
    }
}

impl Permissions for SharedMemory {
    /// Grows with the local regions, from 120 KiB to 2 MiB, and is constant once they have been
    /// created.
    fn region_list_bytes_max(&self) -> usize {
        list_bytes_max(self.ring_bytes)
    }

    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        self.set_right((view, peer), region, true)?;
        // Polls check until the peer's queue has arrived.
        self.await_news();
        Ok(())
    }

    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        self.set_right((view, peer), region, false)
    }

    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool {
        let region = RegionIndex::of(region);
        let may = |region| self.views.get(view).is_some_and(|view| view.may_write(peer, region));
        region.is_some_and(may)
    }

    fn read(
        &mut self,
        view: ViewId,
        from: Rank,
        source: Area,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        if length > self.region_list_bytes_max() {
            return Err(ErrorKind::OutOfRange);
        }
        if self.completed.len() >= COMPLETIONS_MAX {
            return Err(ErrorKind::QueueFull);
        }
        let open = self.views.get(view).ok_or(ErrorKind::Other)?;
        open.read_region(from, source, (into, &self.own_regions), length)?;
        self.completed.push_back(token);
        Ok(())
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        self.told.pop_front()
    }
}

impl Residence {
    /// Creates a region. It precedes every row that is sent later.
    fn make_region(
        self: &Arc<Self>,
        region: Region,
        bytes: usize,
    ) -> Result<SharedRegionMemory, Error> {
        let refused = |reason| Error::RegionRefused { region: region.0, reason };
        if region == Region::ROW {
            return Err(refused("its number is reserved for rows"));
        }
        RegionIndex::of(region).ok_or(refused("regions are numbered from 1 to 8"))?;
        let whole = bytes.saturating_add(HEADER_BYTES);
        check_space(whole_pages(std::iter::once(whole)), || 0)?;
        let memory = self.make_memory(whole)?;
        if !self.take_this_region(region, &memory) {
            return Err(refused("it exists already, or block memory has its number"));
        }
        self.own_regions().push((region, Arc::clone(&memory)));
        Ok(SharedRegionMemory(memory))
    }
}

impl HostRegions for SharedMemory {
    type RegionMemory = SharedRegionMemory;

    /// # Errors
    /// Returns [`Error::RegionRefused`], [`Error::NoMemory`] or [`Error::HasLeft`]. Nothing is left
    /// behind in these cases.
    fn region(&mut self, region: Region, bytes: usize) -> Result<SharedRegionMemory, Error> {
        if self.has_made_rows {
            let reason = "a view has already been created";
            return Err(Error::RegionRefused { region: region.0, reason });
        }
        let memory = self.residence.make_region(region, bytes)?;
        if let Some(index) = RegionIndex::of(region) {
            self.own_regions[index.0] = Some(memory.clone());
        }
        let bytes = self.own_regions.iter().flatten().map(|memory| memory.writer().bytes()).sum();
        self.ring_bytes = ring_bytes(bytes);
        Ok(memory)
    }

    fn views_max(&self) -> usize {
        VIEWS_MAX
    }
}
