//! The fabric's interface to regions: rights granted and revoked, and reads posted.

use tramontane_core::fabric::{
    Area, ErrorKind, HostRegions, PermissionEvent, Permissions, Region, Token,
};
use tramontane_core::ids::{Rank, ViewId};

use super::memory::RegionMemory;
use super::reads::PostedRead;
use crate::connection::Connection;
use crate::fabric::{Tcp, VIEWS_MAX};
use crate::frame::WRITE_MAX;
use crate::memory::NoRows;

impl Tcp {
    /// Returns the connection to a peer that has a view open, for an operation on a local region.
    fn region_way(
        &mut self,
        view: ViewId,
        peer: Rank,
        region: Region,
    ) -> Result<&mut Connection, ErrorKind> {
        let open = self.views.iter().find(|open| open.id == view).ok_or(ErrorKind::Other)?;
        if self.regions.get(region).is_none() {
            return Err(ErrorKind::OutOfRange);
        }
        let connection = open.reach(peer, self.connections.get_mut())?;
        match connection.is_ready(view) {
            true if connection.is_over_there(view) => Err(ErrorKind::PeerLost),
            true => Ok(connection),
            false => Err(ErrorKind::QueueFull),
        }
    }
}

impl Permissions for Tcp {
    /// # Errors
    /// Returns the trait's errors, and also `QueueFull` if the peer has not opened the view yet.
    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        if self.region_way(view, peer, region)?.may_write(view, region) {
            return Ok(());
        }
        let right = self.right_numbers.next().ok_or(ErrorKind::Other)?;
        self.region_way(view, peer, region)?.grant(view, region, right);
        self.flush_to(view, peer);
        Ok(())
    }

    /// Fails only if there is nothing to revoke.
    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        match self.region_way(view, peer, region) {
            Ok(connection) => connection.revoke(view, region),
            Err(ErrorKind::QueueFull) => return Ok(()),
            Err(kind) => return Err(kind),
        }
        self.flush_to(view, peer);
        Ok(())
    }

    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool {
        let route = self.view(view).and_then(|view| view.route(peer));
        let connections = self.connections.borrow();
        let connection = route.and_then(|index| connections.get(index));
        connection.is_some_and(|connection| connection.may_write(view, region))
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
        let Self { views, connections, events, regions, .. } = self;
        let open = views.iter().find(|open| open.id == view).ok_or(ErrorKind::Other)?;
        let connection = open.reach(from, connections.get_mut())?;
        let memory = regions.area(into, length).filter(|_| (1..=WRITE_MAX).contains(&length));
        let memory = memory.ok_or(ErrorKind::OutOfRange)?.clone();
        if !connection.is_ready(view) || !events.has_room() {
            return Err(ErrorKind::QueueFull);
        }
        if !connection.has_area(source, length) {
            return Err(ErrorKind::OutOfRange);
        }
        if connection.is_over_there(view) {
            return Err(ErrorKind::PeerLost);
        }
        let Area { region, offset } = source;
        let (into, at) = (Some(memory), into.offset);
        let read = PostedRead { view, region, into, offset: at, left: length, token };
        let offset = u64::try_from(offset).map_err(|_| ErrorKind::OutOfRange)?;
        connection.ask(read, offset)?;
        self.flush_to(view, from);
        Ok(())
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        // If a member polls for both, a poll has already processed the received data.
        if self.events.has_no_permission() && !std::mem::take(&mut self.has_carried) {
            self.carry();
            self.has_carried = false;
        }
        self.events.next_permission()
    }
}

impl HostRegions for Tcp {
    type RegionMemory = RegionMemory;

    fn region(&mut self, region: Region, bytes: usize) -> Result<RegionMemory, NoRows> {
        if self.has_made_views {
            return Err(NoRows::RegionAfterView);
        }
        self.regions.make(region, bytes)
    }

    fn views_max(&self) -> usize {
        VIEWS_MAX
    }
}
