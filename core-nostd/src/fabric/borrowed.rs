//! Implementations for `&mut` references to a fabric, so that wrappers can borrow one.
//!
//! Requirement: FAB-2.

use super::capabilities::Capabilities;
use super::permissions::{PermissionEvent, Permissions};
use super::seam::{Event, Fabric, ViewMemory};
use super::write::{Area, Region, Token, Write};
use crate::ids::{Rank, ViewId};

impl<F: Fabric + ?Sized> Fabric for &mut F {
    type Error = F::Error;

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), F::Error> {
        (**self).open(view, memory)
    }

    #[inline]
    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        (**self).ready(view, peer)
    }

    fn cut(&mut self, view: ViewId, peer: Rank) {
        (**self).cut(view, peer);
    }

    fn retire(&mut self, view: ViewId) -> bool {
        (**self).retire(view)
    }

    #[inline]
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), F::Error> {
        (**self).post(view, to, writes, token)
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        (**self).poll()
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        (**self).wake(view, to);
    }

    fn arm(&mut self) -> bool {
        (**self).arm()
    }

    fn disarm(&mut self) {
        (**self).disarm();
    }

    #[inline]
    fn observe_barrier(&self) {
        (**self).observe_barrier();
    }
}

impl<F: Permissions + ?Sized> Permissions for &mut F {
    fn region_list_bytes_max(&self) -> usize {
        (**self).region_list_bytes_max()
    }

    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), F::Error> {
        (**self).grant(view, peer, region)
    }

    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), F::Error> {
        (**self).revoke(view, peer, region)
    }

    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool {
        (**self).may_write(view, peer, region)
    }

    fn read(
        &mut self,
        view: ViewId,
        from: Rank,
        source: Area,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), F::Error> {
        (**self).read(view, from, source, into, length, token)
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        (**self).poll_permission()
    }
}
