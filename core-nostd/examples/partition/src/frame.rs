//! The frames in a queuing port: a header that names the session, and a part of a write or of a
//! snapshot.

use crate::ports::MESSAGE_BYTES;
use tramontane_core::ids::ViewId;

/// Size in bytes of the header, which precedes the part.
pub const HEADER_BYTES: usize = 32;

/// Size in bytes of the largest part; a multiple of 8, so that no cell is cut.
pub const PART_BYTES: usize = MESSAGE_BYTES - HEADER_BYTES;

const MAGIC: u16 = 0x7a33;

const _: () = assert!(PART_BYTES.is_multiple_of(8) && PART_BYTES > 0);

/// A session: two incarnations and a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Incarnation of the sender.
    pub from: u32,
    /// Incarnation of the receiver.
    pub to: u32,
    /// The view.
    pub view: ViewId,
}

impl Session {
    /// Returns the same session, as the partner's frames name it.
    pub const fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, view: self.view }
    }
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A part of the sender's row.
    Write,
    /// A part of the state with which the receiver begins.
    Snapshot,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of content.
    pub kind: FrameKind,
    /// Session of the frame.
    pub session: Session,
    /// Number of earlier frames in the session.
    pub sequence: u32,
    /// Offset of the part, in the row or in the snapshot.
    pub offset: u32,
    /// Size in bytes of the whole snapshot.
    pub total: u16,
}

/// A frame, ready to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    bytes: [u8; MESSAGE_BYTES],
    length: usize,
}

impl Frame {
    /// Creates a frame with room for a part of `part_bytes` bytes, at most [`PART_BYTES`].
    pub fn new(header: &Header, part_bytes: usize) -> Self {
        let part_bytes = part_bytes.min(PART_BYTES);
        let Header { kind, session, sequence, offset, total } = *header;
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2] = match kind {
            FrameKind::Write => 1,
            FrameKind::Snapshot => 2,
        };
        bytes[4..8].copy_from_slice(&session.from.to_le_bytes());
        bytes[8..12].copy_from_slice(&session.to.to_le_bytes());
        bytes[12..20].copy_from_slice(&session.view.get().to_le_bytes());
        bytes[20..24].copy_from_slice(&sequence.to_le_bytes());
        bytes[24..28].copy_from_slice(&offset.to_le_bytes());
        bytes[28..30].copy_from_slice(&total.to_le_bytes());
        Self { bytes, length: HEADER_BYTES.wrapping_add(part_bytes) }
    }

    /// Returns the part, to be filled in.
    pub fn part(&mut self) -> &mut [u8] {
        self.bytes.get_mut(HEADER_BYTES..self.length).unwrap_or_default()
    }

    /// Returns the bytes to send.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Decodes a message into header and part, or returns `None` if it is not a frame.
pub fn decode(message: &[u8]) -> Option<(Header, &[u8])> {
    let (header, part) = message.split_first_chunk::<HEADER_BYTES>()?;
    let four = |at: usize| {
        let bytes = header.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes))
    };
    let kind = match header[..4] {
        [low, high, kind, 0] if u16::from_le_bytes([low, high]) == MAGIC => match kind {
            1 => FrameKind::Write,
            2 => FrameKind::Snapshot,
            _ => return None,
        },
        _ => return None,
    };
    let view = u64::from(four(12)?) | u64::from(four(16)?) << 32;
    let header = Header {
        kind,
        session: Session { from: four(4)?, to: four(8)?, view: ViewId(view) },
        sequence: four(20)?,
        offset: four(24)?,
        total: u16::from_le_bytes([header[28], header[29]]),
    };
    Some((header, part))
}
