//! The frames that two members exchange once they have met, one after the other.
//!
//! ```text
//! 0 kind: 1 open, 2 write, 3 wake, 4 leave, 5 cut, 6 piece of a block 1 zero 2-3 write: the
//! region, 0 is the writer's row; piece: the channel; else zero 4-7 bytes that follow this header
//! 8-15 view 16-23 write: where the bytes go in the region; open: how long the sender's own row is;
//! piece: bytes still to come of the block, these included (16-19), and the block's number (20-23);
//! else zero 24-31 open alone: the digest of the layout by which the sender's memory was made
//! ```
//!
//! Least byte first. There is no frame that the reader must believe: each is compared with what the
//! reader has, and the first that does not fit ends the connection. The incarnation of either end
//! was told when they met, and a connection never outlives a process, so frames need not repeat it
//! (VIE-11).

use tramontane_core::fabric::{Channel, Region};
use tramontane_core::ids::ViewId;

/// How long a header is.
pub(super) const HEADER: usize = 24;

/// How many bytes follow the header of an open: the digest.
pub(super) const OPEN_REST: usize = 8;

/// The most bytes of one write.
pub(super) const WRITE_MAX: usize = 1 << 30;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The sender's memory for a view can be written to; its own row is so long, and its layout has
    /// this digest. It replaces what the sender sent of that view before.
    Open { view: ViewId, row_bytes: u64, digest: u64 },
    /// `length` bytes follow, for the reader's copy of the sender's region.
    Write { view: ViewId, region: Region, offset: u64, length: u32 },
    /// The doorbell.
    Wake,
    /// The sender leaves on purpose: the last frame.
    Leave,
    /// The sender takes nothing more from the reader: the last frame.
    Cut,
    /// `length` bytes of a block follow; of the block, `left` bytes are still to come, those
    /// included.
    Block { view: ViewId, channel: Channel, length: u32, left: u32, immediate: u32 },
}

const OPEN: u8 = 1;
const WRITE: u8 = 2;
const WAKE: u8 = 3;
const LEAVE: u8 = 4;
const CUT: u8 = 5;
const BLOCK: u8 = 6;

/// A frame's bytes; [`Frame::length`] of them count.
pub(super) type FrameBytes = [u8; HEADER + OPEN_REST];

impl Frame {
    /// How many bytes it has, without those of a write or a block.
    pub(super) const fn length(self) -> usize {
        match self {
            Self::Open { .. } => HEADER + OPEN_REST,
            Self::Write { .. } | Self::Block { .. } | Self::Wake | Self::Leave | Self::Cut => {
                HEADER
            }
        }
    }

    pub(super) fn encode(self) -> FrameBytes {
        let (kind, region, length, view, last, rest) = match self {
            // Its eight bytes are counted, so that a reader can tell them from the next frame.
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

    /// The frame that these bytes begin with.
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
            // Said before the rest is waited for: it may never come.
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
            _ => return Decoded::Nonsense,
        };
        // One frame has one form: whatever is set that means nothing is not a member's.
        if bytes.starts_with(&frame.encode()[..frame.length()]) {
            Decoded::Frame(frame)
        } else {
            Decoded::Nonsense
        }
    }
}

/// What stands at the start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A frame.
    Frame(Frame),
    /// A part of one, as far as can be seen.
    Short,
    /// No frame of a member.
    Nonsense,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> [Frame; 8] {
        let view = ViewId(u64::MAX - 3);
        [
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
        ]
    }

    #[test]
    fn frames_survive_the_wire() {
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

    /// Bytes that change need another version of the greeting; then these are written anew.
    #[test]
    fn the_bytes_of_frames_belong_to_the_version_of_the_greeting() {
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
        ];
        let hex = |frame: &Frame| {
            let bytes = frame.encode();
            bytes[..frame.length()].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(tramontane_control::VERSION, 4);
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
            ]
        );
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for kind in (0..=u8::MAX).filter(|kind| !(OPEN..=BLOCK).contains(kind)) {
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
        let mut open = frames()[0].encode();
        open[4] = 1;
        assert_eq!(Frame::decode(&open), Decoded::Nonsense, "an open has one length");
    }
}
