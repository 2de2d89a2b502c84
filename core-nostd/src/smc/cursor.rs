//! A place in a ring.

use crate::ids::{Position, Slot};

/// A position and the slot that it falls on. Moved together, they need no division.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCursor {
    /// Messages before this place.
    pub position: Position,
    /// `position mod window`.
    pub slot: Slot,
}

impl RingCursor {
    /// The start of a ring.
    pub const START: Self = Self { position: Position::ZERO, slot: Slot::ZERO };

    /// One slot on, in a ring of `window` slots.
    #[inline]
    #[must_use]
    pub const fn next(self, window: u32) -> Self {
        let slot = self.slot.next();
        Self { position: self.position.next(), slot: if slot.0 >= window { Slot::ZERO } else { slot } }
    }

    /// Messages from `earlier` to here.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.position.0.saturating_sub(earlier.position.0)
    }
}
