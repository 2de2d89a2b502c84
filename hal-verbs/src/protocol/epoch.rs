//! The epochs of a re-established connection, in the number of bits that a notice provides for
//! them.

/// The number of bits of an epoch in a notice.
pub(crate) const EPOCH_BITS: u32 = 23;

const MASK: u32 = (1 << EPOCH_BITS) - 1;

/// Returns the next epoch. Epochs wrap, but the two ends are never more than a few epochs apart.
pub(crate) const fn next(epoch: u32) -> u32 {
    epoch.wrapping_add(1) & MASK
}

/// Returns whether an epoch is later than another, that is, ahead of it by less than half of the
/// range.
pub(crate) const fn is_later(epoch: u32, than: u32) -> bool {
    let ahead = epoch.wrapping_sub(than) & MASK;
    ahead > 0 && ahead <= MASK / 2
}

/// The greatest [`tag`].
pub(crate) const TAG_MAX: u8 = (1 << 6) - 1;

/// Returns the lowest bits of an epoch, for notices that have no room for the whole epoch. The two
/// ends are never far enough apart for tags to repeat.
#[allow(clippy::as_conversions, reason = "masked, in a const fn")]
pub(crate) const fn tag(epoch: u32) -> u8 {
    (epoch & TAG_MAX as u32) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoch_order_holds_across_wraparound() {
        for epoch in [0, 1, 77, MASK / 2, MASK - 1, MASK] {
            let later = next(epoch);
            assert!(is_later(later, epoch) && !is_later(epoch, later) && !is_later(epoch, epoch));
            assert!(is_later(next(later), epoch));
        }
        assert_eq!(next(MASK), 0);
    }
}
