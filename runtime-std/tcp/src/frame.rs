//! The frames that two members exchange, in sequence, after they have met.
//!
//! | kind | 2-3 | 4-7 | 8-15 | 16-23 |
//! |---|---|---|---|---|
//! | 1 open | | 8 | view | bytes of the sender's own row |
//! | 2 write | region | bytes that follow | view | offset in the region |
//! | 3 wake, 4 leave, 5 cut | | | | |
//! | 6 piece of a block | channel | bytes that follow | view | bytes left, immediate value |
//! | 7 list | region | number of writes | view | the right, 0 for a row |
//! | 8 taken | | | | lists so far |
//! | 9 right | region | | view | the right, 0 for none |
//! | 10 region | region | | | its bytes |
//! | 11 close, 12 closed | | | view | |
//! | 13 read | region | number of bytes | view | offset in the region |
//! | 14 piece of an answer | region | bytes that follow | view | bytes left |
//!
//! Byte 0 is the kind. Byte 1 is zero, and so are fields that the table omits. "Bytes left" include
//! those that follow. In a block, they take 32 bits, and the block's immediate value takes the
//! other 32. The header of an open frame is followed by 8 more bytes, the digest of the layout of
//! the sender's memory.
//!
//! The region of a write to a copy of a third member's row is that of
//! [`Region::copy_of`](tramontane_core::fabric::Region::copy_of).
//!
//! All numbers are little-endian. The reader trusts no frame: each is checked against the reader's
//! own state, and the first invalid one ends the connection. The two ends exchanged their
//! incarnations when they met, and a connection never outlives a process, so frames need not repeat
//! them (VIE-11).

use tramontane_core::fabric::{Channel, Region};
use tramontane_core::ids::ViewId;

/// The length of a header, in bytes.
pub(super) const HEADER: usize = 24;

/// The number of bytes that follow the header of an open frame: the digest.
pub(super) const OPEN_REST: usize = 8;

/// The maximum number of bytes in one write.
pub(super) const WRITE_MAX: usize = 1 << 30;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The sender's memory for a view may be written to. The sender's row has this length, and the
    /// layout has this digest. This replaces the sender's earlier frame about the same view.
    Open { view: ViewId, row_bytes: u64, digest: u64 },
    /// `length` bytes follow, for the reader's copy of a row or for a region of the reader.
    Write { view: ViewId, region: Region, offset: u64, length: u32 },
    /// The doorbell.
    Wake,
    /// The sender leaves deliberately. This is its last frame.
    Leave,
    /// The sender takes nothing more from the reader. This is its last frame.
    Cut,
    /// `length` bytes of a block follow; `left` bytes of the block are still to come, including
    /// these.
    Block { view: ViewId, channel: Channel, length: u32, left: u32, immediate: u32 },
    /// The next `writes` writes form one list, which the reader confirms. All of them are for rows,
    /// or all are for this region of the reader under this right.
    List { view: ViewId, region: Region, writes: u32, right: u64 },
    /// The sender has finished this number of the reader's lists, counted from the start.
    Taken { lists: u64 },
    /// The reader may write to the sender's region under this right. 0 means that it may not.
    Right { view: ViewId, region: Region, right: u64 },
    /// The sender has a region of this size.
    Region { region: Region, bytes: u64 },
    /// The sender has ended a view that it had opened.
    Close { view: ViewId },
    /// The sender knows that the reader has ended a view, and writes nothing more in it.
    Closed { view: ViewId },
    /// The sender requests bytes of the reader's region.
    Read { view: ViewId, region: Region, offset: u64, length: u32 },
    /// `length` bytes of the sender's region follow, for the reader's oldest unanswered read;
    /// `left` bytes of the answer are still to come, including these.
    Answer { view: ViewId, region: Region, length: u32, left: u64 },
}

const OPEN: u8 = 1;
const WRITE: u8 = 2;
const WAKE: u8 = 3;
const LEAVE: u8 = 4;
const CUT: u8 = 5;
const BLOCK: u8 = 6;
const LIST: u8 = 7;
const TAKEN: u8 = 8;
const RIGHT: u8 = 9;
const REGION: u8 = 10;
const CLOSE: u8 = 11;
const CLOSED: u8 = 12;
const READ: u8 = 13;
const ANSWER: u8 = 14;

/// A frame's bytes. Only the first [`Frame::length`] count.
pub(super) type FrameBytes = [u8; HEADER + OPEN_REST];

impl Frame {
    /// Returns the frame's length, excluding the bytes of a write, a block or an answer.
    pub(super) const fn length(self) -> usize {
        if matches!(self, Self::Open { .. }) { HEADER + OPEN_REST } else { HEADER }
    }

    pub(super) fn encode(self) -> FrameBytes {
        let (kind, region, length, view, last, rest) = match self {
            // The length field counts these eight bytes, so that a reader can find the next frame.
            Self::Open { view, row_bytes, digest } => {
                (OPEN, 0, OPEN_REST as u32, view.0, row_bytes, digest)
            }
            Self::Write { view, region, offset, length } => {
                (WRITE, region.0, length, view.0, offset, 0)
            }
            Self::Block { view, channel, length, left, immediate } => {
                let last = u64::from(left) | u64::from(immediate) << 32;
                (BLOCK, channel.0, length, view.0, last, 0)
            }
            Self::Wake => (WAKE, 0, 0, 0, 0, 0),
            Self::Leave => (LEAVE, 0, 0, 0, 0, 0),
            Self::Cut => (CUT, 0, 0, 0, 0, 0),
            Self::List { view, region, writes, right } => {
                (LIST, region.0, writes, view.0, right, 0)
            }
            Self::Taken { lists } => (TAKEN, 0, 0, 0, lists, 0),
            Self::Right { view, region, right } => (RIGHT, region.0, 0, view.0, right, 0),
            Self::Region { region, bytes } => (REGION, region.0, 0, 0, bytes, 0),
            Self::Close { view } => (CLOSE, 0, 0, view.0, 0, 0),
            Self::Closed { view } => (CLOSED, 0, 0, view.0, 0, 0),
            Self::Read { view, region, offset, length } => {
                (READ, region.0, length, view.0, offset, 0)
            }
            Self::Answer { view, region, length, left } => {
                (ANSWER, region.0, length, view.0, left, 0)
            }
        };
        let mut bytes = [0; HEADER + OPEN_REST];
        bytes[0] = kind;
        bytes[2..4].copy_from_slice(&region.to_le_bytes());
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..16].copy_from_slice(&view.to_le_bytes());
        bytes[16..24].copy_from_slice(&last.to_le_bytes());
        bytes[24..].copy_from_slice(&rest.to_le_bytes());
        bytes
    }

    /// Decodes the frame at the start of these bytes.
    pub(super) fn decode(bytes: &[u8]) -> Decoded {
        let Some(header) = bytes.first_chunk::<HEADER>() else { return Decoded::Short };
        let word = |at: usize| {
            bytes.get(at..).and_then(<[u8]>::first_chunk).map(|word| u64::from_le_bytes(*word))
        };
        let (Some(view), Some(last)) = (word(8).map(ViewId), word(16)) else {
            return Decoded::Short;
        };
        let [.., d, c, b, a] = header[..8] else { return Decoded::Short };
        let length = u32::from_le_bytes([d, c, b, a]);
        let region = Region(u16::from_le_bytes([header[2], header[3]]));
        let frame = match header[0] {
            // This error is reported without waiting for the rest of the frame, which may never
            // arrive.
            OPEN if length != OPEN_REST as u32 => return Decoded::Nonsense,
            OPEN => {
                let Some(digest) = word(HEADER) else { return Decoded::Short };
                Self::Open { view, row_bytes: last, digest }
            }
            WRITE => Self::Write { view, region, offset: last, length },
            BLOCK => {
                let [left, immediate] =
                    [last, last >> 32].map(|word| (word & u64::from(u32::MAX)) as u32);
                Self::Block { view, channel: Channel(region.0), length, left, immediate }
            }
            WAKE => Self::Wake,
            LEAVE => Self::Leave,
            CUT => Self::Cut,
            LIST => Self::List { view, region, writes: length, right: last },
            TAKEN => Self::Taken { lists: last },
            RIGHT => Self::Right { view, region, right: last },
            REGION => Self::Region { region, bytes: last },
            CLOSE => Self::Close { view },
            CLOSED => Self::Closed { view },
            READ => Self::Read { view, region, offset: last, length },
            ANSWER => Self::Answer { view, region, length, left: last },
            _ => return Decoded::Nonsense,
        };
        // Each frame has only one form. A value in an unused field does not come from a member.
        if bytes.starts_with(&frame.encode()[..frame.length()]) {
            Decoded::Frame(frame)
        } else {
            Decoded::Nonsense
        }
    }
}

/// The result of decoding the start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A frame.
    Frame(Frame),
    /// A partial frame, as far as can be determined.
    Short,
    /// Not a frame that a member sends.
    Nonsense,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let view = ViewId(u64::MAX - 3);
        let region = Region(u16::MAX - 1);
        vec![
            Frame::Open { view, row_bytes: 1 << 40, digest: u64::MAX - 7 },
            Frame::Write { view, region: Region(7), offset: u64::MAX, length: u32::MAX },
            Frame::Write { view: ViewId(1), region: Region::ROW, offset: 0, length: 0 },
            Frame::Wake,
            Frame::Leave,
            Frame::Cut,
            Frame::Block {
                view,
                channel: Channel(1023),
                length: 1 << 18,
                left: u32::MAX,
                immediate: u32::MAX - 1,
            },
            Frame::Block { view: ViewId(1), channel: Channel(0), length: 0, left: 0, immediate: 0 },
            Frame::List { view, region, writes: u32::MAX, right: u64::MAX },
            Frame::Taken { lists: u64::MAX },
            Frame::Right { view, region, right: u64::MAX },
            Frame::Region { region, bytes: u64::MAX },
            Frame::Close { view },
            Frame::Closed { view },
            Frame::Read { view, region, offset: u64::MAX, length: u32::MAX },
            Frame::Answer { view, region, length: u32::MAX, left: u64::MAX },
        ]
    }

    #[test]
    fn encoded_frames_decode_unchanged() {
        for frame in frames() {
            let bytes = frame.encode();
            assert_eq!(
                Frame::decode(&bytes),
                Decoded::Frame(frame),
                "and what follows does not matter"
            );
            for length in 0..frame.length() {
                assert_eq!(
                    Frame::decode(&bytes[..length]),
                    Decoded::Short,
                    "{length} bytes of {frame:?}"
                );
            }
        }
    }

    /// If these bytes change, the greeting needs a new version, and this list must be updated.
    #[test]
    fn frame_encoding_matches_the_greeting_version() {
        let view = ViewId(0x0102_0304_0506_0708);
        let frames = [
            Frame::Open { view, row_bytes: 0x1112, digest: 0x2122_2324_2526_2728 },
            Frame::Write { view, region: Region(0x3132), offset: 0x4142, length: 0x5152 },
            Frame::Wake,
            Frame::Leave,
            Frame::Cut,
            Frame::Block {
                view,
                channel: Channel(0x6162),
                length: 0x7172,
                left: 0x8182_8384,
                immediate: 0x9192_9394,
            },
            Frame::List { view, region: Region(0x3132), writes: 0x5152, right: 0x7172 },
            Frame::Taken { lists: 0x7172 },
            Frame::Right { view, region: Region(0x3132), right: 0x7172 },
            Frame::Region { region: Region(0x3132), bytes: 0x7172 },
            Frame::Close { view },
            Frame::Closed { view },
            Frame::Read { view, region: Region(0x3132), offset: 0x4142, length: 0x5152 },
            Frame::Answer { view, region: Region(0x3132), length: 0x5152, left: 0x7172 },
        ];
        let hex = |frame: &Frame| {
            let bytes = frame.encode();
            bytes[..frame.length()].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(tramontane_control::VERSION, 12);
        assert_eq!(
            frames.each_ref().map(hex),
            [
                "010000000800000008070605040302011211000000000000\
                 2827262524232221",
                "020032315251000008070605040302014241000000000000",
                "030000000000000000000000000000000000000000000000",
                "040000000000000000000000000000000000000000000000",
                "050000000000000000000000000000000000000000000000",
                "060062617271000008070605040302018483828194939291",
                "070032315251000008070605040302017271000000000000",
                "080000000000000000000000000000007271000000000000",
                "090032310000000008070605040302017271000000000000",
                "0a0032310000000000000000000000007271000000000000",
                "0b0000000000000008070605040302010000000000000000",
                "0c0000000000000008070605040302010000000000000000",
                "0d0032315251000008070605040302014241000000000000",
                "0e0032315251000008070605040302017271000000000000",
            ]
        );
    }

    #[test]
    fn malformed_frames_are_refused() {
        for kind in (0..=u8::MAX).filter(|kind| !(OPEN..=ANSWER).contains(kind)) {
            let mut bytes = [0; HEADER];
            bytes[0] = kind;
            assert_eq!(Frame::decode(&bytes), Decoded::Nonsense);
        }
        for frame in frames() {
            let mut bytes = frame.encode();
            bytes[1] = 1;
            assert_eq!(
                Frame::decode(&bytes),
                Decoded::Nonsense,
                "{frame:?} with a byte that must be zero"
            );
        }
        for frame in [Frame::Wake, Frame::Leave, Frame::Cut] {
            for at in 1..HEADER {
                let mut bytes = frame.encode();
                bytes[at] = 1;
                assert_eq!(Frame::decode(&bytes), Decoded::Nonsense, "{frame:?} with byte {at}");
            }
        }
        for frame in [Frame::Close { view: ViewId(1) }, Frame::Taken { lists: 1 }] {
            for at in 2..8 {
                let mut bytes = frame.encode();
                bytes[at] = 1;
                assert_eq!(Frame::decode(&bytes), Decoded::Nonsense, "{frame:?} with byte {at}");
            }
        }
        let mut open = frames()[0].encode();
        open[4] = 1;
        assert_eq!(Frame::decode(&open), Decoded::Nonsense, "an open has one length");
    }
}
