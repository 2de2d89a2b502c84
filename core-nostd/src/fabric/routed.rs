//! A wrapper for fabrics whose events the host distributes.
//!
//! Requirement: FAB-2.

use super::capabilities::Capabilities;
use super::seam::{Event, Fabric, ViewMemory};
use super::write::{Token, Write};
use crate::ids::{Rank, ViewId};

/// A fabric that takes its events from the host. During a view change two views are open, and the
/// node of one view must not consume the other view's events.
#[derive(Debug)]
pub struct Routed<'f, F: ?Sized, P> {
    /// The fabric.
    pub fabric: &'f mut F,
    /// Function that returns the next event. It replaces [`Fabric::poll`], which it may call.
    pub poll: P,
}

impl<F: Fabric + ?Sized, P: FnMut(&mut F) -> Option<Event>> Fabric for Routed<'_, F, P> {
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
        (self.poll)(self.fabric)
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
