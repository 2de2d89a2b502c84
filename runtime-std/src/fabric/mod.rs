//! The fabric of a member, of any kind.
//!
//! There is one type for all fabrics, so that each command is written only once. All fabrics are
//! compiled in, and the choice is one branch that always goes the same way.

/// Forwards a call to the fabric in use.
macro_rules! each {
    ($self:ident, $fabric:ident => $call:expr) => {
        match $self {
            $crate::fabric::AnyFabric::SharedMemory($fabric) => $call,
            $crate::fabric::AnyFabric::Tcp($fabric) => $call,
            $crate::fabric::AnyFabric::Verbs($fabric) => $call,
        }
    };
}
pub(crate) use each;

mod blocks;
pub(crate) mod choice;
pub(crate) mod peers;

pub use self::blocks::{AnyBlockMemory, AnyBlockStore, AnyPages, BlockMemoryError};

use std::time::Duration;

use tramontane_control::Session;
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, HostFabric, LocalBell, Token, ViewMemory, ViewPlan,
    Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_verbs::RdmaViews;

use self::peers::PeerFabric;
use crate::member::Memory;
use crate::rdma::{Figures, NoFabric, PostCounts};
use crate::shared_memory::{Bell, SharedMemory};
use crate::tcp::Tcp;
use crate::{shared_memory, tcp};

/// A fabric of this runtime.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "one per member, never moved")]
pub enum AnyFabric {
    /// Rows that all members map.
    SharedMemory(SharedMemory),
    /// Rows of which peers hold copies, updated by frames over TCP.
    Tcp(Tcp),
    /// Rows of which peers hold copies, written over RDMA, with TCP as the side channel.
    Verbs(RdmaViews<Tcp>),
}

/// The bell of a fabric.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyBell {
    /// A futex in the header of the local row.
    SharedMemory(Bell),
    /// A descriptor polled together with the sockets.
    Tcp(tcp::Bell),
}

impl LocalBell for AnyBell {
    #[inline]
    fn ring_if_asleep(&self) {
        match self {
            Self::SharedMemory(bell) => bell.ring_if_asleep(),
            Self::Tcp(bell) => bell.ring_if_asleep(),
        }
    }
}

impl AnyFabric {
    /// Takes ownership of the connection to a node.
    pub(crate) fn connect(&mut self, node: NodeId, session: Session) {
        if let Err(error) = each!(self, fabric => PeerFabric::connect(fabric, node, session)) {
            tracing::warn!(%node, %error, "a connection is not used");
        }
    }

    /// Drops the connection to a node that is no longer in any open view, because its process no
    /// longer takes part. The node's next process will make a new connection.
    pub(crate) fn part_from(&mut self, node: NodeId) {
        each!(self, fabric => PeerFabric::part_from(fabric, node));
    }

    /// Returns whether a node can be reached without establishing a connection first.
    pub(crate) fn is_connected(&self, node: NodeId) -> bool {
        each!(self, fabric => fabric.is_connected(node))
    }

    /// Returns a notice about this member's files in shared memory, if there is one.
    pub(crate) fn notice(&self) -> Option<String> {
        each!(self, fabric => fabric.notice())
    }

    /// Returns the reason why a peer is unreachable, if the fabric knows it. Only RDMA fabrics do.
    pub(crate) fn no_answer(&mut self, view: ViewId, peer: Rank) -> Option<NoFabric> {
        match self {
            Self::SharedMemory(_) | Self::Tcp(_) => None,
            Self::Verbs(fabric) => Some(NoFabric::from(fabric.no_answer(view, peer))),
        }
    }

    /// Updates the fabric's figures, if it has any. Only RDMA fabrics do.
    pub(crate) fn write_figures(&self, shown: &mut Option<Figures>) {
        if let Self::Verbs(fabric) = self {
            fabric.write_figures(shown.get_or_insert_default());
        }
    }

    /// Returns the fabric's counters, if it keeps any. Only RDMA fabrics do.
    #[must_use]
    pub fn counts(&self) -> Option<PostCounts> {
        match self {
            Self::SharedMemory(_) | Self::Tcp(_) => None,
            Self::Verbs(fabric) => Some(fabric.counters()),
        }
    }
}

impl Fabric for AnyFabric {
    type Error = ErrorKind;

    #[inline]
    fn capabilities(&self) -> Capabilities {
        each!(self, fabric => fabric.capabilities())
    }

    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        each!(self, fabric => fabric.open(view, memory))
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        each!(self, fabric => fabric.ready(view, peer))
    }

    fn cut(&mut self, view: ViewId, peer: Rank) {
        each!(self, fabric => fabric.cut(view, peer));
    }

    fn retire(&mut self, view: ViewId) -> bool {
        each!(self, fabric => fabric.retire(view))
    }

    #[inline]
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        each!(self, fabric => fabric.post(view, to, writes, token))
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        each!(self, fabric => fabric.poll())
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        each!(self, fabric => fabric.wake(view, to));
    }

    fn arm(&mut self) -> bool {
        each!(self, fabric => fabric.arm())
    }

    fn disarm(&mut self) {
        each!(self, fabric => fabric.disarm());
    }

    #[inline]
    fn observe_barrier(&self) {
        each!(self, fabric => fabric.observe_barrier());
    }
}

/// The reason why a view has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Shared memory cannot be allocated.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// Memory for TCP cannot be allocated.
    #[error(transparent)]
    Tcp(#[from] tcp::NoRows),
    /// The device cannot provide a view.
    #[error(transparent)]
    Verbs(#[from] tramontane_verbs::NoView),
}

impl HostFabric for AnyFabric {
    type Bell = AnyBell;
    type Rows = Memory;
    type MemoryError = MemoryError;

    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<Memory, MemoryError> {
        Ok(each!(self, fabric => Memory::new(fabric.rows(plan)?)))
    }

    fn local_bell(&self) -> AnyBell {
        match self {
            Self::SharedMemory(fabric) => AnyBell::SharedMemory(fabric.local_bell()),
            Self::Tcp(fabric) => AnyBell::Tcp(fabric.local_bell()),
            Self::Verbs(fabric) => AnyBell::Tcp(fabric.local_bell()),
        }
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        each!(self, fabric => HostFabric::sleep(fabric, timeout))
    }

    fn idle_time(&self) -> Duration {
        each!(self, fabric => HostFabric::idle_time(fabric))
    }

    fn check_peers(&mut self) -> bool {
        each!(self, fabric => HostFabric::check_peers(fabric))
    }

    fn leave(&mut self) {
        each!(self, fabric => HostFabric::leave(fabric));
    }
}
