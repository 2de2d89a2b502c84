//! What carries writes from a node to its peers.
//!
//! Requirement: FAB-1.

use super::capabilities::Capabilities;
use super::error::{FabricError, LossCause};
use super::write::{Token, Write};
use crate::ids::{NodeId, Rank, ViewId};
use crate::memory::{Row, RowWriter};

/// What a fabric reports from [`Fabric::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Event {
    /// The list that was posted with this token is done; its content may change again.
    Completed(Token),
    /// A peer cannot be reached any more. A suspicion, not a verdict (HAL-5). Where two views are
    /// open, each that has the peer is told: its ranks are its own.
    PeerLost {
        /// The view.
        view: ViewId,
        /// The peer.
        peer: Rank,
        /// Why the fabric thinks so.
        cause: LossCause,
    },
    /// A peer's memory for the view can be written now.
    Ready {
        /// The view.
        view: ViewId,
        /// Whose memory.
        peer: Rank,
    },
    /// Somebody rang the doorbell.
    Woken,
}

/// The memory of one view at one node, as it is shown to a fabric.
#[derive(Clone, Copy, Debug)]
pub struct ViewMemory<'m> {
    /// The node's own rank; its row may be read by all and written by the node alone.
    pub own: Rank,
    /// The node ids of the members, in rank order.
    pub members: &'m [NodeId],
    /// The own row. A fabric reads what it sends from here.
    pub row: RowWriter<'m>,
    /// All rows in rank order, the own one included: where the node reads its peers' state.
    pub rows: &'m [Row<'m>],
}

/// Carries writes from a node's own row to its peers' copies of it.
///
/// # What every implementation keeps
/// - No call blocks, and none spins on a full queue.
/// - A [`Guard`](super::Kind::Guard) write carries the bytes as they were when [`Fabric::post`] was
///   called. A [`Content`](super::Kind::Content) write may be read from memory at any moment until
///   its list is completed.
/// - Nothing but the posted ranges ever changes in a peer's copy.
/// - What [`Capabilities::promises`] says about order holds.
/// - `cut` and `retire` may be called any number of times.
///
/// The generic tests in `tramontane-contract` hold an implementation to this.
pub trait Fabric {
    /// What a failed post says.
    type Error: FabricError;

    /// What this fabric promises and how much it takes. The same at every call.
    fn capabilities(&self) -> Capabilities;

    /// Makes a view's memory known: both what is written from and where peers' writes land. The
    /// memory is fresh, and of this view alone (VIE-11). A fabric that makes memory itself
    /// ([`rows`](super::HostFabric::rows)) takes exactly that.
    ///
    /// # Errors
    /// [`Other`](super::ErrorKind::Other) if the view is open already;
    /// [`WrongMemory`](super::ErrorKind::WrongMemory) if the memory was used before, or is not what
    /// the fabric made for this view; else whatever the fabric cannot do.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), Self::Error>;

    /// Whether a peer's memory for this view can be written to. Nobody posts before it can (VIE-11,
    /// VIE-12).
    fn ready(&self, view: ViewId, peer: Rank) -> bool;

    /// Stops all traffic with a peer, in both directions as far as the fabric can. Idempotent.
    fn cut(&mut self, view: ViewId, peer: Rank);

    /// Ends a view. Call it until it returns true: nothing of the view is in flight any more, in or
    /// out, and its memory may go.
    fn retire(&mut self, view: ViewId) -> bool;

    /// Sends ranges of the own row to one peer: all of the list or nothing of it, in list order as
    /// far as [`WRITE_ORDER`](super::Promises::WRITE_ORDER) goes. With a token,
    /// [`Event::Completed`] follows.
    ///
    /// # Errors
    /// Only [`QueueFull`](super::ErrorKind::QueueFull) is worth another try, at a later step: the
    /// queue has no room, or the peer is not ready yet ([`Fabric::ready`]). More writes than
    /// [`Capabilities::writes_max`], or a range outside the row:
    /// [`OutOfRange`](super::ErrorKind::OutOfRange). A view that is not open here:
    /// [`Other`](super::ErrorKind::Other).
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), Self::Error>;

    /// The next thing that happened, if any.
    fn poll(&mut self) -> Option<Event>;

    /// Rings a peer's doorbell, whether it sleeps or not.
    fn wake(&mut self, view: ViewId, to: Rank);

    /// Says that this node is about to sleep: from now on a post to it rings its doorbell. After
    /// this the caller must look for work once more before it sleeps (IDL-1). False if something
    /// came already.
    fn arm(&mut self) -> bool;

    /// Says that this node is awake again.
    fn disarm(&mut self);

    /// Stands between seeing a guard and reading what it guards (HAL-1): it is called after each
    /// guard that is new, a slot's counter, rounds used in silence, or a guard of the view's
    /// columns, and before anything behind it is read. On cache-coherent memory the acquire load in
    /// the core is enough, and this does nothing.
    fn observe_barrier(&self);
}
