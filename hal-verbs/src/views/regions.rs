//! Regions, which every view of this process includes, and the right to write to them in each view.

use std::os::fd::AsFd;

use tramontane_core::fabric::{
    Area, ErrorKind, HostFabric, HostRegions, PermissionEvent, Permissions, Region, Token,
};
use tramontane_core::ids::{Rank, ViewId};

use super::fabric::{NoView, RdmaViews};
use crate::site::{REGIONS_MAX, RegionMemory};

/// Maximum number of open views. Each pair of members has one connection for rows, one per region,
/// and one for blocks if the view carries them.
pub const VIEWS_MAX: usize = 256;

impl<S: HostFabric<Error = ErrorKind> + AsFd> Permissions for RdmaViews<S> {
    fn region_list_bytes_max(&self) -> usize {
        self.site.region_list_bytes_max()
    }

    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        self.view_mut(view).ok_or(ErrorKind::Other)?.verbs.grant(view, peer, region)
    }

    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        self.view_mut(view).ok_or(ErrorKind::Other)?.verbs.revoke(view, peer, region)
    }

    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool {
        self.view(view).is_some_and(|open| open.verbs.may_write(view, peer, region))
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
        let open = self.view_mut(view).ok_or(ErrorKind::Other)?;
        open.verbs.read(view, from, source, into, length, token)
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        // If a member polls both kinds of event, a poll has already made this check.
        if std::mem::take(&mut self.has_polled) {
            return self.poll_in_turn(|view| view.verbs.told_permission());
        }
        self.poll_in_turn(|view| view.verbs.poll_permission())
    }
}

impl<S: HostFabric<Error = ErrorKind> + AsFd> HostRegions for RdmaViews<S> {
    type RegionMemory = RegionMemory;

    /// All processes that share a view create the same regions in the same order, but each chooses
    /// its own length. Each region is a connection of that view.
    fn region(&mut self, region: Region, bytes: usize) -> Result<RegionMemory, NoView> {
        if self.has_made_views {
            return Err(NoView::RegionAfterView);
        }
        if self.regions.iter().any(|made| made.region() == region) {
            return Err(NoView::RegionTwice(region.0));
        }
        if self.regions.len() == REGIONS_MAX {
            return Err(NoView::TooManyRegions);
        }
        let memory = self.site.region(region, bytes)?;
        self.regions.push(memory.clone());
        Ok(memory)
    }

    fn views_max(&self) -> usize {
        VIEWS_MAX
    }
}
