//! Promises and limits of a fabric. The core assumes nothing that the fabric does not promise.
//!
//! Requirement: FAB-1.

bitflags::bitflags! {
    /// Promises about order. Each is separate because some hardware keeps only some of them
    /// (HAL-1).
    ///
    /// Except for [`SHARED`](Self::SHARED), the promises hold for rows and for regions
    /// ([`Permissions`](super::Permissions)). Every fabric carries a write to a region, because the
    /// region's owner controls who may write. For a region, a guard therefore carries the bytes of
    /// the call, and a list completes once its bytes have arrived, even on fabrics that share rows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Promises: u32 {
        /// The bytes of one write become visible in address order, so a counter at the end of a
        /// message may travel in the same write as the message (SMC-6).
        const ADDRESS_ORDER = 1;
        /// Writes to one peer become visible in the order in which they were posted.
        const WRITE_ORDER = 1 << 1;
        /// When a list has completed, its bytes are visible at the peer.
        const COMPLETION_VISIBLE = 1 << 2;
        /// Peers read this node's rows directly from its memory, so a store to the local row has
        /// the effect of a write. This holds for rows only.
        const SHARED = 1 << 3;
        /// Parts of another member's row can be passed on: a write from the local copy of that row
        /// to a peer's copy of it ([`Region::copy_of`](super::Region::copy_of)). Such a write keeps
        /// the other promises, together with the writes of the local row to the same peer.
        const RELAYS = 1 << 4;
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Promises {
    /// Formats the names of the promises as `Debug` does.
    fn format(&self, out: defmt::Formatter<'_>) {
        defmt::write!(out, "Promises(");
        if self.is_empty() {
            defmt::write!(out, "0x0");
        }
        // bound: the promises
        for (at, promise) in self.iter().enumerate() {
            if at > 0 {
                defmt::write!(out, " | ");
            }
            match promise {
                Self::ADDRESS_ORDER => defmt::write!(out, "ADDRESS_ORDER"),
                Self::WRITE_ORDER => defmt::write!(out, "WRITE_ORDER"),
                Self::COMPLETION_VISIBLE => defmt::write!(out, "COMPLETION_VISIBLE"),
                Self::RELAYS => defmt::write!(out, "RELAYS"),
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
    /// Promises about order.
    pub promises: Promises,
    /// Maximum number of writes in one list; at least four.
    pub writes_max: usize,
    /// Maximum number of bytes in one write, and of content bytes in flight to one peer; at least
    /// the size of one slot.
    pub write_bytes_max: usize,
    /// Maximum number of bytes in one [`Kind::Guard`](super::Kind::Guard) write; at least 24.
    pub guard_bytes_max: usize,
    /// Cost of one more write in a list, expressed as a number of bytes added to an existing write:
    /// the size of its headers on the wire, for example. Contiguous slots are posted as one write
    /// if the padding between their messages does not exceed this (SMC-7). `usize::MAX` if the
    /// cost of a write does not depend on its size.
    pub write_overhead_bytes: usize,
}

impl Capabilities {
    /// Returns whether the fabric can keep a guard after its content.
    ///
    /// Order between writes, or visibility upon completion, is enough. Address order is not enough:
    /// two writes of the same cell could overtake each other, so that the cell's value would
    /// decrease.
    #[must_use]
    pub const fn can_guard(&self) -> bool {
        self.promises.intersects(Promises::WRITE_ORDER.union(Promises::COMPLETION_VISIBLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guard_requires_write_order_or_completion_visibility() {
        let with = |promises| Capabilities {
            promises,
            writes_max: 4,
            write_bytes_max: 64,
            guard_bytes_max: 24,
            write_overhead_bytes: 0,
        };
        assert!(with(Promises::WRITE_ORDER).can_guard());
        assert!(with(Promises::COMPLETION_VISIBLE).can_guard());
        assert!(!with(Promises::ADDRESS_ORDER).can_guard());
        assert!(!with(Promises::empty()).can_guard());
    }
}
