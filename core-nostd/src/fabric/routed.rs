//! A wrapper for fabrics whose events the host distributes.
//!
//! Requirement: FAB-2.

use super::capabilities::Capabilities;
use super::permissions::{PermissionEvent, Permissions};
use super::seam::{Event, Fabric, ViewMemory};
use super::write::{Area, Region, Token, Write};
use crate::ids::{Rank, ViewId};

/// A fabric that takes its events from the host. During a view change two views are open, and the
/// node of one view must not consume the other view's events.
#[derive(Clone, Copy, Debug)]
pub struct Routed<F, P> {
    /// The fabric.
    pub fabric: F,
    /// Function that returns the next event. It replaces [`Fabric::poll`], which it may call.
    pub poll: P,
}

impl<F: Fabric, P: FnMut(&mut F) -> Option<Event>> Fabric for Routed<F, P> {
    type Error = F::Error;

    fn capabilities(&self) -> Capabilities {
        self.fabric.capabilities()
    }

    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), F::Error> {
        self.fabric.open(view, memory)
    }

    #[inline]
    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.fabric.ready(view, peer)
    }

    fn cut(&mut self, view: ViewId, peer: Rank) {
        self.fabric.cut(view, peer);
    }

    fn retire(&mut self, view: ViewId) -> bool {
        self.fabric.retire(view)
    }

    #[inline]
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), F::Error> {
        self.fabric.post(view, to, writes, token)
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        (self.poll)(&mut self.fabric)
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        self.fabric.wake(view, to);
    }

    fn arm(&mut self) -> bool {
        self.fabric.arm()
    }

    fn disarm(&mut self) {
        self.fabric.disarm();
    }

    #[inline]
    fn observe_barrier(&self) {
        self.fabric.observe_barrier();
    }
}

impl<F: Permissions, P: FnMut(&mut F) -> Option<Event>> Permissions for Routed<F, P> {
    fn region_list_bytes_max(&self) -> usize {
        self.fabric.region_list_bytes_max()
    }

    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), F::Error> {
        self.fabric.grant(view, peer, region)
    }

    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), F::Error> {
        self.fabric.revoke(view, peer, region)
    }

    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool {
        self.fabric.may_write(view, peer, region)
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
        self.fabric.read(view, from, source, into, length, token)
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        self.fabric.poll_permission()
    }
}
