//! The fabric of a member, whichever it is.
//!
//! One type for all of them, so that a command is written once. All fabrics are compiled in; the
//! choice is one branch that always goes the same way.

/// Hands a call to whichever fabric it is.
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

pub use self::blocks::{AnyPages, BlockMemory, BlockMemoryError, BlockStore};

use std::num::NonZeroU64;
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
#[allow(clippy::large_enum_variant, reason = "there is one a member, and it stays where it is")]
pub enum AnyFabric {
    /// Rows that all members map.
    SharedMemory(SharedMemory),
    /// Rows that peers hold copies of, and bring up to date as frames come over TCP.
    Tcp(Tcp),
    /// Rows that peers hold copies of, written over RDMA, with TCP beside it.
    Verbs(RdmaViews<Tcp>),
}

/// The bell that goes with it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyBell {
    /// A futex in the own row's header.
    SharedMemory(Bell),
    /// A descriptor beside the sockets.
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
    /// Takes over the connection to a node.
    pub(crate) fn connect(&mut self, node: NodeId, session: Session) {
        if let Err(error) = each!(self, fabric => PeerFabric::connect(fabric, node, session)) {
            tracing::warn!(%node, %error, "a connection is not used");
        }
    }

    /// A node is out of all views that are open: its connection is that of a process which takes no
    /// part any more, and is replaced by one of the node's next process.
    pub(crate) fn part_from(&mut self, node: NodeId) {
        each!(self, fabric => PeerFabric::part_from(fabric, node));
    }

    /// Whether a node can be reached without a connection being made first.
    pub(crate) fn is_connected(&self, node: NodeId) -> bool {
        each!(self, fabric => fabric.is_connected(node))
    }

    /// What became of this member's files in shared memory.
    pub(crate) fn notice(&self) -> Option<String> {
        each!(self, fabric => fabric.notice())
    }

    /// Sends to these nodes so many bytes a second at most, over TCP.
    pub(crate) fn limit_rates(&self, rates: &[(u32, NonZeroU64)]) -> std::io::Result<()> {
        let Self::Tcp(fabric) = self else { return Ok(()) };
        rates.iter().try_for_each(|(node, rate)| fabric.limit_rate(NodeId(*node), *rate))
    }

    /// Why a peer that cannot be reached is not, where the fabric knows: over RDMA.
    pub(crate) fn no_answer(&mut self, view: ViewId, peer: Rank) -> Option<NoFabric> {
        match self {
            Self::SharedMemory(_) | Self::Tcp(_) => None,
            Self::Verbs(fabric) => Some(NoFabric::from(fabric.no_answer(view, peer))),
        }
    }

    /// Writes down the figures of the fabric, where it has any: over RDMA.
    pub(crate) fn write_figures(&self, shown: &mut Option<Figures>) {
        if let Self::Verbs(fabric) = self {
            fabric.write_figures(shown.get_or_insert_default());
        }
    }

    /// What the fabric did so far, where it counts that: over RDMA.
    #[must_use]
    pub fn counts(&self) -> Option<PostCounts> {
        match self {
            Self::SharedMemory(_) | Self::Tcp(_) => None,
            Self::Verbs(fabric) => Some(PostCounts::from(&fabric.counters())),
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

/// Why a view has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is no shared memory for it.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// There is none over TCP.
    #[error(transparent)]
    Tcp(#[from] tcp::NoRows),
    /// The device has none to give.
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
