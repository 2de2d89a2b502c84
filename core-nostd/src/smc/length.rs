//! What the length of a slot says.
//!
//! Requirement: SMC-4.

/// The length that marks a slot whose reservation was dropped: it holds a place, and no message.
const LENGTH_OF_NULL: u32 = u32::MAX;

/// Set in the length of a slot whose message goes by block multicast (RDM-7): the slot holds what
/// describes it. Above every length of a message, as that of a null is.
const LARGE: u32 = 1 << 31;

/// What a slot's length says of it. One number, like its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotLength {
    /// A message of so many bytes.
    Message(u32),
    /// What describes a large message, in so many bytes.
    Large(u32),
    /// No message.
    Null,
}

impl SlotLength {
    /// Reads a length. Every number is one; whether so many bytes fit is for the reader to see.
    pub(crate) const fn decode(length: u32) -> Self {
        if length == LENGTH_OF_NULL {
            Self::Null
        } else if length & LARGE != 0 {
            Self::Large(length & !LARGE)
        } else {
            Self::Message(length)
        }
    }

    /// How many bytes of the slot it speaks for.
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

// No message's length has the mark.
const _: () = assert!(crate::layout::MESSAGE_MAX < LARGE);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// RDM-7: each number says one thing, and each thing is said by one number.
        #[test]
        fn a_length_is_the_number_of_what_it_says(length: u32) {
            prop_assert_eq!(SlotLength::decode(length).encode(), length);
        }

        #[test]
        fn below_the_mark_are_messages_and_from_it_on_what_describes_large_ones(
            length in 0..LARGE.wrapping_sub(1),
        ) {
            prop_assert_eq!(SlotLength::decode(length), SlotLength::Message(length));
            let large = SlotLength::decode(length.wrapping_add(1 << 31));
            prop_assert_eq!(large, SlotLength::Large(length));
            prop_assert_eq!((large.bytes(), SlotLength::Message(length).bytes()), (length, length));
        }
    }

    #[test]
    fn the_greatest_number_is_no_message_and_has_no_bytes() {
        assert_eq!(SlotLength::decode(u32::MAX), SlotLength::Null);
        assert_eq!((SlotLength::Null.encode(), SlotLength::Null.bytes()), (u32::MAX, 0));
    }
}
