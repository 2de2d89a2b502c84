//! The contents of a cast's messages.
//!
//! The first byte of each message is its kind, so a slot is one byte larger than the largest
//! record.
//!
//! | byte | meaning | rest |
//! |---|---|---|
//! | 0 | a record | its bytes, without the newline |
//! | 1 | the sender's input ended; no more records follow from that sender | nothing |
//! | 2 | the sender has delivered the end of every member's input | nothing |
//!
//! The last two kinds of message end a group that has no coordinator. All members deliver the same
//! sequence, so all see the last input end at the same position, and the output is complete there.
//! If a member left at that moment, slower members would lose a peer. So each member sends one more
//! message after that position, and leaves once that message has been delivered everywhere, because
//! by then every member has passed the end.

/// Size in bytes of the framing that a message adds to its record.
pub(super) const FRAMING: u32 = 1;

const RECORD: u8 = 0;
const INPUT_ENDED: u8 = 1;
const COMPLETE: u8 = 2;

/// A message's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'m> {
    /// A record.
    Record(&'m [u8]),
    /// The sender has no more records.
    InputEnded,
    /// The sender has delivered everything.
    Complete,
}

impl<'m> Frame<'m> {
    /// Reads a message, or returns `None` if no version of this program sends such a message.
    #[inline]
    pub(super) fn read(message: &'m [u8]) -> Option<Self> {
        match message {
            [RECORD, record @ ..] => Some(Self::Record(record)),
            [INPUT_ENDED] => Some(Self::InputEnded),
            [COMPLETE] => Some(Self::Complete),
            _ => None,
        }
    }

    /// Returns the length of the message in bytes.
    pub(super) const fn length(&self) -> usize {
        match self {
            Self::Record(record) => 1 + record.len(),
            Self::InputEnded | Self::Complete => 1,
        }
    }

    /// Writes the message. The length of `message` must be [`Frame::length`].
    #[inline]
    pub(super) fn write(&self, message: &mut [u8]) {
        let [kind, rest @ ..] = message else { return };
        match self {
            Self::Record(record) => {
                *kind = RECORD;
                rest.copy_from_slice(record);
            }
            Self::InputEnded => *kind = INPUT_ENDED,
            Self::Complete => *kind = COMPLETE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cast_frames_round_trip() {
        for frame in [
            Frame::Record(b""),
            Frame::Record(b"\x01"),
            Frame::Record(b"abc"),
            Frame::InputEnded,
            Frame::Complete,
        ] {
            let mut message = vec![0xff; frame.length()];
            frame.write(&mut message);
            assert_eq!(Frame::read(&message), Some(frame));
        }
    }

    #[test]
    fn unknown_frames_are_refused() {
        for message in [&b""[..], b"\x01x", b"\x03", b"\xff"] {
            assert_eq!(Frame::read(message), None);
        }
    }
}
