//! What a fabric promises. Nothing is assumed that is not promised.
//!
//! Requirement: FAB-1.

bitflags::bitflags! {
    /// Promises about order, told apart because hardware gives some without the others (HAL-1).
    ///
    /// They hold for rows and for regions ([`Permissions`](super::Permissions)) alike, but for
    /// [`SHARED`](Self::SHARED): a write to a region is carried on every fabric, since its owner
    /// says who may write. So of a region, a guard has the bytes of the call, and a list is
    /// completed once its bytes are there, also where rows are shared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Promises: u32 {
        /// The bytes of one write become visible in the order of their addresses, so a counter at
        /// the end of a message may travel in the message's own write (SMC-6).
        const ADDRESS_ORDER = 1;
        /// Writes to one peer become visible in the order in which they were posted.
        const WRITE_ORDER = 1 << 1;
        /// When a list is completed, its bytes are visible at the peer.
        const COMPLETION_VISIBLE = 1 << 2;
        /// The peers' rows are this node's own memory: a store in the own row is the write. Of rows
        /// alone.
        const SHARED = 1 << 3;
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Promises {
    /// The names, as `Debug` has them.
    fn format(&self, out: defmt::Formatter<'_>) {
        defmt::write!(out, "Promises(");
        if self.is_empty() {
            defmt::write!(out, "0x0");
        }
        // bound: the promises that there are
        for (at, promise) in self.iter().enumerate() {
            if at > 0 {
                defmt::write!(out, " | ");
            }
            match promise {
                Self::ADDRESS_ORDER => defmt::write!(out, "ADDRESS_ORDER"),
                Self::WRITE_ORDER => defmt::write!(out, "WRITE_ORDER"),
                Self::COMPLETION_VISIBLE => defmt::write!(out, "COMPLETION_VISIBLE"),
                _ => defmt::write!(out, "SHARED"),
            }
        }
        defmt::write!(out, ")");
    }
}

/// Promises and limits of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Capabilities {
    /// What holds about order.
    pub promises: Promises,
    /// The most writes of one list; at least four.
    pub writes_max: usize,
    /// The most bytes of one write, or of the content in flight to one peer; at least one slot.
    pub write_bytes_max: usize,
    /// The most bytes of a [`Kind::Guard`](super::Kind::Guard) write; at least 24.
    pub guard_bytes_max: usize,
}

impl Capabilities {
    /// Whether a guard can be kept behind its content at all.
    ///
    /// Order between writes, or visibility upon completion, is enough. Address order alone is not:
    /// two writes of one cell could pass each other, and the cell would shrink.
    #[must_use]
    pub const fn can_guard(&self) -> bool {
        self.promises.intersects(Promises::WRITE_ORDER.union(Promises::COMPLETION_VISIBLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_needs_order_between_writes_or_completions() {
        let with = |promises| Capabilities {
            promises,
            writes_max: 4,
            write_bytes_max: 64,
            guard_bytes_max: 24,
        };
        assert!(with(Promises::WRITE_ORDER).can_guard());
        assert!(with(Promises::COMPLETION_VISIBLE).can_guard());
        assert!(!with(Promises::ADDRESS_ORDER).can_guard());
        assert!(!with(Promises::empty()).can_guard());
    }
}
