//! A position in a ring.
//!
//! Requirement: SMC-2.

use crate::ids::{Position, Slot};

/// A position and its slot. They advance together, so no division is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RingCursor {
    /// Number of messages before this position.
    pub position: Position,
    /// `position mod window`.
    pub slot: Slot,
}

impl RingCursor {
    /// Start of a ring.
    pub const START: Self = Self { position: Position::ZERO, slot: Slot::ZERO };

    /// Returns the next position in a ring of `window` slots.
    ///
    /// Neither sum wraps: a slot is below the window, and no position reaches 2^63 (`handoff`).
    #[inline]
    #[must_use]
    pub const fn next(self, window: u32) -> Self {
        let slot = self.slot.0.wrapping_add(1);
        Self {
            position: Position(self.position.0.wrapping_add(1)),
            slot: Slot(if slot >= window { 0 } else { slot }),
        }
    }

    /// Returns the position `count` slots later; `count` is at most one window.
    #[inline]
    #[must_use]
    pub const fn advanced(self, count: u32, window: u32) -> Self {
        let slot = self.slot.0.saturating_add(count);
        Self {
            position: Position(self.position.0.wrapping_add(widen(count))),
            slot: Slot(if slot >= window { slot.wrapping_sub(window) } else { slot }),
        }
    }

    /// Returns the number of messages from `earlier` to this position.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.position.0.saturating_sub(earlier.position.0)
    }
}

#[allow(clippy::as_conversions)]
const fn widen(count: u32) -> u64 {
    count as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advance_equals_repeated_next() {
        let mut stepped = RingCursor::START;
        for start in 0..14_u32 {
            let mut at = stepped;
            for count in 0..=7 {
                assert_eq!(stepped.advanced(count, 7), at, "{count} from {start}");
                assert_eq!(at.since(stepped), u64::from(count), "{count} from {start}");
                at = at.next(7);
            }
            stepped = stepped.next(7);
        }
    }
}
