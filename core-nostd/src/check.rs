//! Checks on the contents of rows, for memory and links that may flip bits. They are an option of
//! the layout ([`Layout::with_checks`](crate::layout::Layout::with_checks)).
//!
//! A *cell* carries its own check, because its neighbours may change while it is read: 48 bits hold
//! the value, and the other 16 bits are computed from them. Any one or two flipped bits of a cell
//! are detected.
//!
//! A *slot* has one more cell, computed from its payload, its length and the position of its
//! message. Any change within a single aligned group of 8 bytes of a payload is detected. The
//! slot's counter is a cell and carries its own check.
//!
//! A cell of zero passes its check, so fresh memory needs no preparation. Other damage goes
//! undetected with a probability of 2^-16 in a cell and 2^-64 in a payload. Checks do not protect
//! against a member that intends to deceive.
//!
//! Requirement: FLT-2.

use crate::ids::Position;

/// Number of bits of a cell that hold its value.
const VALUE_BITS: u32 = 48;

/// Largest number that a checked cell holds.
pub const SEALED_MAX: u64 = (1 << VALUE_BITS) - 1;

/// The check of a number is the highest bits of its product with this factor. The factor was chosen
/// so that one or two flipped bits always make a cell invalid (the tests try all of them).
const CELL_FACTOR: u64 = 0x4164_d839_9f76_7c45;

/// Each group of 8 bytes is mixed in by an invertible step, so two payloads that differ in one
/// group never have the same check.
const SLOT_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Number of consecutive steps in which a cell or a slot may fail its check before its owner is
/// reported. Until then the cell or slot counts as not yet written, and a later post can repair it.
pub const STEPS_UNREADABLE: u32 = 16;

/// Whether cells and slots carry checks.
///
/// The type is as wide as an address, so that a ring, which contains one, has no padding. Padding
/// next to a small field is copied in parts that overlap, and a processor stalls when it reads such
/// a copy. With one byte, a group sent a fifth fewer messages of 1 byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(usize)]
pub enum Checks {
    /// A cell holds only its value.
    #[default]
    Off,
    /// A cell carries its own check, and a slot carries another.
    On,
}

impl Checks {
    /// Returns the content of a cell that holds `value`.
    #[inline]
    #[must_use]
    pub const fn seal(self, value: u64) -> u64 {
        match self {
            Self::Off => value,
            Self::On => seal(value),
        }
    }

    /// Returns the value of a cell, or `None` if the cell fails its check.
    #[inline]
    #[must_use]
    pub const fn unseal(self, cell: u64) -> Option<u64> {
        match self {
            Self::Off => Some(cell),
            Self::On => unseal(cell),
        }
    }

    /// Returns the value of a local cell, which needs no check.
    #[inline]
    pub(crate) const fn own(self, cell: u64) -> u64 {
        match self {
            Self::Off => cell,
            Self::On => cell & SEALED_MAX,
        }
    }

    /// Returns whether checks are on.
    #[inline]
    #[must_use]
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// Returns a number with its check. A number that is too large is replaced with [`SEALED_MAX`].
const fn seal(value: u64) -> u64 {
    let value = if value > SEALED_MAX { SEALED_MAX } else { value };
    value | check_of(value) << VALUE_BITS
}

const fn unseal(cell: u64) -> Option<u64> {
    let value = cell & SEALED_MAX;
    if cell >> VALUE_BITS == check_of(value) { Some(value) } else { None }
}

const fn check_of(value: u64) -> u64 {
    value.wrapping_mul(CELL_FACTOR) >> VALUE_BITS
}

/// Returns the check of a slot with this payload; `length` is the value stored in the slot.
///
/// Not inlined, so that callers compile to the same machine code when checks are off.
#[cold]
#[inline(never)]
#[must_use]
pub(crate) fn slot_check(position: Position, length: u32, payload: &[u8]) -> u64 {
    let mut check = take_in(take_in(0, position.0.wrapping_add(1)), u64::from(length));
    let mut rest = payload;
    // bound: one group of 8 bytes per turn, at most a slot's capacity
    while let Some((group, tail)) = rest.split_first_chunk::<8>() {
        check = take_in(check, u64::from_ne_bytes(*group));
        rest = tail;
    }
    let mut last = 0;
    // bound: fewer than 8 bytes
    for byte in rest {
        last = last << 8 | u64::from(*byte);
    }
    take_in(check, last)
}

const fn take_in(check: u64, group: u64) -> u64 {
    (check.rotate_left(29) ^ group).wrapping_mul(SLOT_FACTOR)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::as_conversions)]
mod tests {
    use super::*;

    /// Returns test values: small, large and intermediate ones.
    fn values() -> impl Iterator<Item = u64> {
        let spread = (0..40_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16);
        (0..40).chain(spread).chain([SEALED_MAX, SEALED_MAX - 1, 1 << 47])
    }

    #[test]
    fn one_or_two_flipped_cell_bits_are_detected() {
        for value in values() {
            let cell = Checks::On.seal(value);
            assert_eq!(Checks::On.unseal(cell), Some(value));
            assert_eq!(Checks::On.own(cell), value);
            for one in 0..64 {
                for other in 0..64 {
                    let flipped = cell ^ 1 << one ^ if one == other { 0 } else { 1 << other };
                    assert_eq!(Checks::On.unseal(flipped), None, "{value:x}: {one} and {other}");
                }
            }
        }
    }

    #[test]
    fn zero_passes_check_and_large_values_are_clamped() {
        assert_eq!(Checks::On.unseal(0), Some(0));
        assert_eq!(Checks::On.unseal(Checks::On.seal(u64::MAX)), Some(SEALED_MAX));
        assert_eq!(Checks::Off.unseal(Checks::Off.seal(u64::MAX)), Some(u64::MAX));
    }

    #[test]
    fn every_flipped_slot_bit_is_detected() {
        let payload: Vec<u8> = (0..43).map(|byte| byte * 5).collect();
        for length in [0, 1, 7, 8, 9, 43] {
            let payload = &payload[..length];
            let check = slot_check(Position(9), length as u32, payload);
            for bit in 0..length * 8 {
                let mut flipped = payload.to_vec();
                flipped[bit >> 3] ^= 1 << (bit % 8);
                assert_ne!(slot_check(Position(9), length as u32, &flipped), check, "bit {bit}");
            }
            for bit in 0..32 {
                let other = length as u32 ^ 1 << bit;
                let read = &payload[..length.min(other as usize)];
                assert_ne!(slot_check(Position(9), other, read), check, "length, bit {bit}");
            }
            assert_ne!(slot_check(Position(5), length as u32, payload), check, "another lap");
        }
    }
}
