//! Where a peer is in its life, and where the view is.

use tramontane_core::ids::ViewId;

use super::Loss;
use crate::protocol::Doorbell;

/// A peer's place in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its end of the connections is not up yet, as far as is known here. What it sends is taken.
    Awaited,
    /// Its end is up too, and the first writes are on their way to it, which show whether a way
    /// leads there at all. What it sends is taken.
    Tried,
    /// The small one of the first writes is answered, and the one of a full packet is awaited.
    SmallPassed,
    /// Traffic flows.
    Live,
    /// It ended the view at its side; what is under way to it may fail, and what is posted to it is
    /// passed over.
    Departed,
    /// Cut by the core.
    Cut,
    /// Lost; why is in `loss`.
    Lost,
}

/// Where this end of a peer's connections is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Not made yet, being made, being brought up, or gone.
    Away,
    /// Made: the peer can be shown its card.
    Made,
    /// Up: the peer can be told so.
    Up,
}

/// What the fabric knows of one member; of the own one nothing.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stage: Stage,
    pub(super) ends: Ends,
    pub(super) doorbell: Doorbell,
    pub(super) loss: Option<Loss>,
    /// The connection on which something was flushed, and the vendor's error: why is not known yet.
    pub(super) flushed: Option<(usize, u32)>,
    pub(super) ready_untold: bool,
    pub(super) loss_untold: bool,
    /// A post found no room, and room has not come since.
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
    /// Whether what comes from the peer is taken.
    pub(super) const fn is_heard(self) -> bool {
        self.is_wanted() || matches!(self, Self::Departed)
    }

    /// Whether the peer is there, as far as is known, or is to come.
    pub(super) const fn is_wanted(self) -> bool {
        matches!(self, Self::Awaited | Self::Tried | Self::SmallPassed | Self::Live)
    }

    /// Whether its first writes are on their way.
    pub(super) const fn is_probed(self) -> bool {
        matches!(self, Self::Tried | Self::SmallPassed)
    }
}

/// One view's life; memory is never used for a second one (VIE-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Fresh,
    Open(ViewId),
    Retiring(ViewId),
    /// Nothing is under way, and its connections and registrations are being ended.
    Ending,
    Retired,
}
