//! The optimisations of Spindle, each of which can be switched off.
//!
//! Requirements: BAT-1, BAT-3.

bitflags::bitflags! {
    /// The optimisations of Spindle. All are on by default. With all of them off, the node is the
    /// paper's baseline.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Switches: u8 {
        /// Send takes all ready messages; if off, one message per step.
        const SEND_BATCHING = 1;
        /// Receive takes all new messages; if off, one message per step in total, each with its own
        /// acknowledgement.
        const RECEIVE_BATCHING = 1 << 1;
        /// Delivery takes all stable messages; if off, one message per step.
        const DELIVERY_BATCHING = 1 << 2;
        /// Senders that lag use up their rounds (Spindle III-B).
        const NULLS = 1 << 3;
        /// Posts wait for the end of the step; if off, each stage posts its own changes (Spindle
        /// III-C).
        const LATE_POSTING = 1 << 4;
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Switches {
    fn format(&self, out: defmt::Formatter<'_>) {
        defmt::write!(out, "Switches({=u8:b})", self.bits());
    }
}

impl Default for Switches {
    fn default() -> Self {
        Self::all()
    }
}

impl Switches {
    /// Returns whether each stage posts its own changes.
    pub(crate) const fn posts_early(self) -> bool {
        !self.contains(Self::LATE_POSTING)
    }
}
