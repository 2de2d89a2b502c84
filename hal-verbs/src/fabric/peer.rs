//! The states of a peer and of the view.

use tramontane_core::ids::ViewId;

use super::Loss;
use crate::protocol::Doorbell;

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerStage {
    /// The peer's end of the connections is not yet known to be up. Its messages are accepted.
    Awaited,
    /// The peer's end is up too, and the first writes are in flight, which show whether any path
    /// leads to the peer. Its messages are accepted.
    Tried,
    /// The empty first write has been acknowledged, and that of a full packet is awaited.
    SmallPassed,
    /// Traffic flows.
    Live,
    /// The peer has ended the view. Requests in flight to it may fail, and new posts to it are
    /// dropped.
    Departed,
    /// The core has cut the peer.
    Cut,
    /// The peer is lost. `loss` contains the reason.
    Lost,
}

/// The state of this end of a peer's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Not created yet, being created, being brought up, or destroyed.
    Away,
    /// Created: the peer can be shown the card.
    Made,
    /// Up: the peer can be told that this end is ready.
    Up,
}

/// The fabric's state of one member; it is empty for this member itself.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stage: PeerStage,
    pub(super) ends: Ends,
    pub(super) doorbell: Doorbell,
    pub(super) loss: Option<Loss>,
    /// The connection on which a request was flushed, with the vendor's error, until the cause is
    /// known.
    pub(super) flushed: Option<(usize, u32)>,
    pub(super) ready_untold: bool,
    pub(super) loss_untold: bool,
    /// Whether a post has found no room and there has been none since.
    pub(super) refused: bool,
}

impl Peer {
    pub(super) const fn new() -> Self {
        Self {
            stage: PeerStage::Awaited,
            ends: Ends::Away,
            doorbell: Doorbell::new(),
            loss: None,
            flushed: None,
            ready_untold: false,
            loss_untold: false,
            refused: false,
        }
    }
}

impl PeerStage {
    /// Returns whether messages from the peer are accepted.
    pub(super) const fn is_heard(self) -> bool {
        self.is_wanted() || matches!(self, Self::Departed)
    }

    /// Returns whether the peer is expected, or alive as far as known.
    pub(super) const fn is_wanted(self) -> bool {
        matches!(self, Self::Awaited | Self::Tried | Self::SmallPassed | Self::Live)
    }

    /// Returns whether the peer's first writes are in flight.
    pub(super) const fn is_probed(self) -> bool {
        matches!(self, Self::Tried | Self::SmallPassed)
    }
}

/// The state of one view; its memory is never reused for another view (VIE-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Fresh,
    Open(ViewId),
    Retiring(ViewId),
    /// Nothing is in flight, and connections and registrations are being destroyed.
    Ending,
    Retired,
}
