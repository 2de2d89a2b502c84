//! What two members say to each other once they have met: frames, one after the other.
//!
//! ```text
//! 0     kind: 1 open, 2 write, 3 wake, 4 leave, 5 cut
//! 1     zero
//! 2-3   region that is written; 0 is the writer's row
//! 4-7   bytes that follow this header
//! 8-15  view
//! 16-23 write: where the bytes go in the region; open: how long the sender's own row is; else zero
//! ```
//!
//! Least byte first. There is no frame that the reader must believe: each is compared with what the reader has, and the
//! first that does not fit ends the connection. The incarnation of either end was told when they met, and a connection
//! never outlives a process, so frames need not repeat it (VIE-11).

use tramontane_core::fabric::Region;
use tramontane_core::ids::ViewId;

/// How long a header is.
pub(super) const HEADER: usize = 24;

/// The most bytes of one write.
pub(super) const WRITE_MAX: usize = 1 << 30;

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The sender's memory for a view can be written to; its own row is so long.
    Open { view: ViewId, row_bytes: u64 },
    /// `length` bytes follow, for the reader's copy of the sender's region.
    Write { view: ViewId, region: Region, offset: u64, length: u32 },
    /// The doorbell.
    Wake,
    /// The sender leaves on purpose: the last frame.
    Leave,
    /// The sender takes nothing more from the reader: the last frame.
    Cut,
}

const OPEN: u8 = 1;
const WRITE: u8 = 2;
const WAKE: u8 = 3;
const LEAVE: u8 = 4;
const CUT: u8 = 5;

impl Frame {
    pub(super) fn encode(self) -> [u8; HEADER] {
        let (kind, region, length, view, last) = match self {
            Self::Open { view, row_bytes } => (OPEN, 0, 0, view.0, row_bytes),
            Self::Write { view, region, offset, length } => (WRITE, region.0, length, view.0, offset),
            Self::Wake => (WAKE, 0, 0, 0, 0),
            Self::Leave => (LEAVE, 0, 0, 0, 0),
            Self::Cut => (CUT, 0, 0, 0, 0),
        };
        let mut bytes = [0; HEADER];
        bytes[0] = kind;
        bytes[2..4].copy_from_slice(&region.to_le_bytes());
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..16].copy_from_slice(&view.to_le_bytes());
        bytes[16..].copy_from_slice(&last.to_le_bytes());
        bytes
    }

    /// None if no member says that.
    pub(super) fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let length = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
        let region = Region(u16::from_le_bytes([bytes[2], bytes[3]]));
        let (view, last) = (ViewId(word(8)?), word(16)?);
        let frame = match bytes[0] {
            OPEN => Self::Open { view, row_bytes: last },
            WRITE => Self::Write { view, region, offset: last, length },
            WAKE => Self::Wake,
            LEAVE => Self::Leave,
            CUT => Self::Cut,
            _ => return None,
        };
        // One frame has one form: whatever is set that means nothing is not a member's.
        (frame.encode() == *bytes).then_some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> [Frame; 6] {
        let view = ViewId(u64::MAX - 3);
        [
            Frame::Open { view, row_bytes: 1 << 40 },
            Frame::Write { view, region: Region(7), offset: u64::MAX, length: u32::MAX },
            Frame::Write { view: ViewId(1), region: Region::ROW, offset: 0, length: 0 },
            Frame::Wake,
            Frame::Leave,
            Frame::Cut,
        ]
    }

    #[test]
    fn frames_survive_the_wire() {
        for frame in frames() {
            assert_eq!(Frame::decode(&frame.encode()), Some(frame));
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for kind in (0..=u8::MAX).filter(|kind| !(OPEN..=CUT).contains(kind)) {
            let mut bytes = [0; HEADER];
            bytes[0] = kind;
            assert_eq!(Frame::decode(&bytes), None);
        }
        for frame in frames() {
            let mut bytes = frame.encode();
            bytes[1] = 1;
            assert_eq!(Frame::decode(&bytes), None, "{frame:?} with a byte that must be zero");
        }
        for frame in [Frame::Wake, Frame::Leave, Frame::Cut] {
            for at in 1..HEADER {
                let mut bytes = frame.encode();
                bytes[at] = 1;
                assert_eq!(Frame::decode(&bytes), None, "{frame:?} with byte {at}");
            }
        }
        let mut open = frames()[0].encode();
        open[4] = 1;
        assert_eq!(Frame::decode(&open), None, "nothing follows an open");
    }
}
