//! The trait that carries writes from a node to its peers.
//!
//! Requirement: FAB-1.

use super::capabilities::Capabilities;
use super::error::{FabricError, LossCause};
use super::write::{Token, Write};
use crate::ids::{NodeId, Rank, ViewId};
use crate::memory::{Row, RowWriter};

/// An event that a fabric reports from [`Fabric::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Event {
    /// The list that was posted with this token has completed; its content may change again.
    Completed(Token),
    /// A peer can no longer be reached. This is a suspicion, not a verdict (HAL-5). If several
    /// views with this peer are open, each view gets an event of its own, because ranks differ
    /// between views.
    PeerLost {
        /// The view.
        view: ViewId,
        /// The peer.
        peer: Rank,
        /// Reason why the fabric considers the peer lost.
        cause: LossCause,
    },
    /// A peer's memory for the view can now be written.
    Ready {
        /// The view.
        view: ViewId,
        /// Peer that owns the memory.
        peer: Rank,
    },
    /// A peer has rung the doorbell.
    Woken,
}

/// The memory of one view at one node, as passed to a fabric.
#[derive(Clone, Copy, Debug)]
pub struct ViewMemory<'m> {
    /// Local rank. All members may read the row of this rank, but only this node writes it.
    pub own: Rank,
    /// Node ids of the members, in rank order.
    pub members: &'m [NodeId],
    /// Local row, from which the fabric reads the bytes that it sends.
    pub row: RowWriter<'m>,
    /// All rows in rank order, including the local row. The node reads its peers' state there.
    pub rows: &'m [Row<'m>],
}

/// Carries writes from a node's row to its peers' copies of that row.
///
/// # Requirements on implementations
/// - No call blocks, and none spins on a full queue.
/// - A [`Guard`](super::Kind::Guard) write carries the bytes as they were when [`Fabric::post`] was
///   called. A [`Content`](super::Kind::Content) write may be read from memory at any moment until
///   its list has completed.
/// - Only the posted ranges of a peer's copy ever change.
/// - The promises about order in [`Capabilities::promises`] hold.
/// - `cut` and `retire` may be called any number of times.
///
/// The generic tests in `tramontane-contract` verify these rules for an implementation.
pub trait Fabric {
    /// Error of a failed call.
    type Error: FabricError;

    /// Returns the promises and limits of this fabric, which never change.
    fn capabilities(&self) -> Capabilities;

    /// Registers the memory of a view: both the memory to write from and the memory where peers'
    /// writes land. The memory must be fresh and belong to this view only (VIE-11). A fabric that
    /// allocates its own memory ([`rows`](super::HostFabric::rows)) accepts only that memory.
    ///
    /// # Errors
    /// Fails with [`Other`](super::ErrorKind::Other) if the view is already open, with
    /// [`WrongMemory`](super::ErrorKind::WrongMemory) if the memory has been used before or is not
    /// what the fabric allocated for this view, and otherwise with the fabric's own errors.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), Self::Error>;

    /// Returns whether a peer's memory for this view can be written. Nothing may be posted to the
    /// peer before that (VIE-11, VIE-12). A lost peer is not ready, so a caller that waits for a
    /// peer also polls for its loss.
    fn ready(&self, view: ViewId, peer: Rank) -> bool;

    /// Stops all traffic with a peer, in both directions as far as the fabric can. Idempotent.
    fn cut(&mut self, view: ViewId, peer: Rank);

    /// Ends a view. Call it until it returns true: then nothing of the view is in flight in either
    /// direction, and its memory may be freed.
    fn retire(&mut self, view: ViewId) -> bool;

    /// Sends ranges of the local row to one peer. Either the whole list is posted or nothing, and
    /// its writes keep their order as far as [`WRITE_ORDER`](super::Promises::WRITE_ORDER) is
    /// promised. If a token is given, [`Event::Completed`] follows.
    ///
    /// # Errors
    /// Only [`QueueFull`](super::ErrorKind::QueueFull) is worth a retry in a later step: either the
    /// queue is full, or the peer is not ready yet ([`Fabric::ready`]). A list of more than
    /// [`Capabilities::writes_max`] writes or a range outside the row fails with
    /// [`OutOfRange`](super::ErrorKind::OutOfRange). A view that is not open here fails with
    /// [`Other`](super::ErrorKind::Other).
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), Self::Error>;

    /// Returns the next event, if any.
    fn poll(&mut self) -> Option<Event>;

    /// Rings a peer's doorbell, whether or not the peer sleeps.
    fn wake(&mut self, view: ViewId, to: Rank);

    /// Announces that this node is about to sleep: from then on, a post to this node rings its
    /// doorbell. The caller must then look for work once more before it sleeps (IDL-1). Returns
    /// false if something has arrived already.
    fn arm(&mut self) -> bool;

    /// Announces that this node is awake again.
    fn disarm(&mut self);

    /// Separates the observation of a guard from the reads of the data that it guards (HAL-1). The
    /// core calls it after each new guard (a slot's counter, silent rounds, or a guard of the
    /// view's columns) and before it reads the guarded data. On cache-coherent memory the core's
    /// acquire load is enough, so this call does nothing.
    fn observe_barrier(&self);
}
