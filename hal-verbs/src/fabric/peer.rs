//! The states of a peer and of the view.

use tramontane_core::ids::ViewId;

use super::Loss;
use crate::protocol::Doorbell;

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The peer's end of the connections is not known to be up yet. Its messages are accepted.
    Awaited,
    /// The peer's end is up too, and the first writes are in flight, which show whether a path
    /// leads there at all. Its messages are accepted.
    Tried,
    /// The empty first write is acknowledged, and that of a full packet is awaited.
    SmallPassed,
    /// Traffic flows.
    Live,
    /// The peer ended the view. Requests in flight to it may fail, and new posts to it are dropped.
    Departed,
    /// The core has cut the peer.
    Cut,
    /// The peer is lost; `loss` has the reason.
    Lost,
}

/// The state of this end of a peer's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Not made yet, being made, being brought up, or gone.
    Away,
    /// Made: the peer can be shown its card.
    Made,
    /// Up: the peer can be informed that this end is ready.
    Up,
}

/// The fabric's state of one member; empty for this member.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stage: Stage,
    pub(super) ends: Ends,
    pub(super) doorbell: Doorbell,
    pub(super) loss: Option<Loss>,
    /// The connection on which a request was flushed, with the vendor's error, until the cause is
    /// known.
    pub(super) flushed: Option<(usize, u32)>,
    pub(super) ready_untold: bool,
    pub(super) loss_untold: bool,
    /// Whether a post found no room and there has been none since.
    pub(super) refused: bool,
}

impl Peer {
    pub(super) const fn new() -> Self {
        Self {
            stage: Stage::Awaited,
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

impl Stage {
    /// Returns whether messages from the peer are accepted.
    pub(super) const fn is_heard(self) -> bool {
        self.is_wanted() || matches!(self, Self::Departed)
    }

    /// Returns whether the peer is alive, as far as is known, or expected.
    pub(super) const fn is_wanted(self) -> bool {
        matches!(self, Self::Awaited | Self::Tried | Self::SmallPassed | Self::Live)
    }

    /// Returns whether the peer's first writes are in flight.
    pub(super) const fn is_probed(self) -> bool {
        matches!(self, Self::Tried | Self::SmallPassed)
    }
}

/// The state of one view; memory is never reused for a second one (VIE-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Fresh,
    Open(ViewId),
    Retiring(ViewId),
    /// Nothing is in flight, and connections and registrations are being ended.
    Ending,
    Retired,
}
