//! The length stored in a slot.
//!
//! Requirement: SMC-4.

/// Length that marks a slot whose reservation was dropped: the slot counts in the order, but has no
/// message.
const LENGTH_OF_NULL: u32 = u32::MAX;

/// Flag in the length of a slot whose message is sent by block multicast (RDM-7): the slot contains
/// its descriptor. Such a length is above every message length, as is the length of a null.
const LARGE: u32 = 1 << 31;

/// A decoded slot length. It is encoded as one number, like the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotLength {
    /// A message, with its length in bytes.
    Message(u32),
    /// The descriptor of a large message, with the descriptor's length in bytes.
    Large(u32),
    /// No message.
    Null,
}

impl SlotLength {
    /// Decodes a length. Every number is valid; the reader must check whether that many bytes fit.
    pub(crate) const fn decode(length: u32) -> Self {
        if length == LENGTH_OF_NULL {
            Self::Null
        } else if length & LARGE != 0 {
            Self::Large(length & !LARGE)
        } else {
            Self::Message(length)
        }
    }

    /// Returns the number of bytes used in the slot.
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            Self::Message(length) | Self::Large(length) => length,
            Self::Null => 0,
        }
    }

    pub(crate) const fn encode(self) -> u32 {
        match self {
            Self::Message(length) => length,
            Self::Large(length) => length | LARGE,
            Self::Null => LENGTH_OF_NULL,
        }
    }
}

// No message length has the flag `LARGE`.
const _: () = assert!(crate::layout::MESSAGE_MAX < LARGE);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// RDM-7: the encoding is one to one.
        #[test]
        fn slot_length_round_trips(length: u32) {
            prop_assert_eq!(SlotLength::decode(length).encode(), length);
        }

        #[test]
        fn large_flag_separates_messages_from_descriptors(
            length in 0..LARGE.wrapping_sub(1),
        ) {
            prop_assert_eq!(SlotLength::decode(length), SlotLength::Message(length));
            let large = SlotLength::decode(length.wrapping_add(1 << 31));
            prop_assert_eq!(large, SlotLength::Large(length));
            prop_assert_eq!((large.bytes(), SlotLength::Message(length).bytes()), (length, length));
        }
    }

    #[test]
    fn maximum_length_value_encodes_a_null() {
        assert_eq!(SlotLength::decode(u32::MAX), SlotLength::Null);
        assert_eq!((SlotLength::Null.encode(), SlotLength::Null.bytes()), (u32::MAX, 0));
    }
}
