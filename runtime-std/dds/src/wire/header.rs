//! The header before the CDR of each sample in a slot of the group.
//!
//! # Invariants
//! - The CDR after a header begins at a multiple of 8 bytes. Because a slot is aligned to 16 bytes,
//!   plain types are aligned.
//! - The bytes come from other processes, so malformed headers are rejected, and values in headers
//!   are never used as an index.

use std::time::Duration;

use tramontane::Sender;

use crate::cdr::{Encoding, InstanceHandle};
use crate::error::DdsError;
use crate::time::Timestamp;

/// Size, in bytes, of a header without an origin.
pub(crate) const HEADER_BYTES: usize = 40;

/// Size of an origin in bytes.
const ORIGIN_BYTES: usize = 24;

/// Maximum number of bytes before a sample.
pub(crate) const HEADER_MAX: usize = HEADER_BYTES + ORIGIN_BYTES;

/// The version of this format.
const VERSION: u8 = 1;

/// This bit is set in the kind of a message that has an origin.
const HAS_ORIGIN: u8 = 0x80;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A sample. Its CDR follows.
    Data,
    /// An instance has ended. The CDR of its key follows, as for all kinds below that concern an
    /// instance.
    Dispose,
    /// The writer no longer writes an instance.
    Unregister,
    /// The writer disposes of an instance and unregisters it.
    DisposeAndUnregister,
    /// The writer announces itself, with its policies, before its first message.
    Announce,
    /// The writer has been deleted.
    Gone,
    /// The writer is alive.
    Alive,
    /// The participant begins. Its earlier writers are gone, together with its previous process.
    /// Sent in logged topics, because a log does not show views.
    Begun,
}

/// The origin of a sample from another system: its writer there, and its number among that writer's
/// samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The writer's RTPS GUID.
    pub writer: [u8; 16],
    /// The sample's number.
    pub sequence: u64,
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) encoding: Encoding,
    /// The writer's number among its node's writers.
    pub(crate) writer: u32,
    /// The message's number among the writer's messages, from 1. Announcements and liveliness
    /// messages have no number, which is encoded as 0.
    pub(crate) sequence: u64,
    pub(crate) source: Timestamp,
    pub(crate) instance: InstanceHandle,
    pub(crate) origin: Option<Origin>,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Data,
        Self::Dispose,
        Self::Unregister,
        Self::DisposeAndUnregister,
        Self::Announce,
        Self::Gone,
        Self::Alive,
        Self::Begun,
    ];

    const fn code(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::Dispose => 1,
            Self::Unregister => 2,
            Self::DisposeAndUnregister => 3,
            Self::Announce => 4,
            Self::Gone => 5,
            Self::Alive => 6,
            Self::Begun => 7,
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Returns whether the message concerns an instance, and therefore has a number.
    pub(crate) const fn is_of_instance(self) -> bool {
        matches!(self, Self::Data | Self::Dispose | Self::Unregister | Self::DisposeAndUnregister)
    }
}

impl Header {
    /// Writes the header to the beginning of a slot, which must be long enough.
    #[inline]
    pub(crate) fn write(&self, slot: &mut [u8]) {
        let Some((header, rest)) = slot.split_first_chunk_mut::<HEADER_BYTES>() else { return };
        let has_origin = if self.origin.is_some() { HAS_ORIGIN } else { 0 };
        header[0] = VERSION;
        header[1] = self.kind.code() | has_origin;
        header[2..4].copy_from_slice(&self.encoding.0.to_le_bytes());
        header[4..8].copy_from_slice(&self.writer.to_le_bytes());
        header[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        header[16..24].copy_from_slice(&self.source.0.to_le_bytes());
        header[24..40].copy_from_slice(&self.instance.0);
        if let (Some(origin), Some(place)) = (&self.origin, rest.first_chunk_mut::<ORIGIN_BYTES>())
        {
            place[..16].copy_from_slice(&origin.writer);
            place[16..].copy_from_slice(&origin.sequence.to_le_bytes());
        }
    }

    /// Returns a header and the bytes after it, or `None` if the bytes are not one of our messages.
    #[inline]
    pub(crate) fn read(message: &[u8]) -> Option<(Self, &[u8])> {
        let (header, rest) = message.split_first_chunk::<HEADER_BYTES>()?;
        if header[0] != VERSION {
            return None;
        }
        let kind = Kind::of_code(header[1] & !HAS_ORIGIN)?;
        let (origin, rest) = if header[1] & HAS_ORIGIN == 0 {
            (None, rest)
        } else {
            let (origin, rest) = rest.split_first_chunk::<ORIGIN_BYTES>()?;
            let (writer, sequence) = origin.split_first_chunk::<16>()?;
            let sequence = u64::from_le_bytes(*sequence.first_chunk()?);
            (Some(Origin { writer: *writer, sequence }), rest)
        };
        let read = Self {
            kind,
            encoding: Encoding(u16::from_le_bytes(*header[2..].first_chunk()?)),
            writer: u32::from_le_bytes(*header[4..].first_chunk()?),
            sequence: u64::from_le_bytes(*header[8..].first_chunk()?),
            source: Timestamp(i64::from_le_bytes(*header[16..].first_chunk()?)),
            instance: InstanceHandle(*header[24..].first_chunk()?),
            origin,
        };
        Some((read, rest))
    }
}

/// Announces in a topic that a participant begins.
pub(crate) fn say_begun(mut sender: Sender, wait: Duration) -> Result<(), DdsError> {
    let mut slot = [0; HEADER_BYTES];
    Header {
        kind: Kind::Begun,
        encoding: Encoding::NATIVE,
        writer: 0,
        sequence: 0,
        source: Timestamp::now(),
        instance: InstanceHandle::KEYLESS,
        origin: None,
    }
    .write(&mut slot);
    sender.send(&slot, wait)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> impl Strategy<Value = Header> {
        let origin = proptest::option::of((any::<[u8; 16]>(), any::<u64>()));
        let numbers = (any::<u16>(), any::<u32>(), any::<u64>(), any::<i64>());
        (0_usize..8, numbers, any::<[u8; 16]>(), origin).prop_map(
            |(kind, (encoding, writer, sequence, source), instance, origin)| Header {
                kind: Kind::ALL[kind],
                encoding: Encoding(encoding),
                writer,
                sequence,
                source: Timestamp(source),
                instance: InstanceHandle(instance),
                origin: origin.map(|(writer, sequence)| Origin { writer, sequence }),
            },
        )
    }

    proptest! {
        #[test]
        fn headers_round_trip(header in header(), body in any::<Vec<u8>>()) {
            let bytes = if header.origin.is_some() { HEADER_MAX } else { HEADER_BYTES };
            let mut slot = vec![0; bytes];
            header.write(&mut slot);
            slot.extend_from_slice(&body);
            prop_assert_eq!(Header::read(&slot), Some((header, &body[..])));
            prop_assert_eq!(bytes % 8, 0);
        }

        #[test]
        fn arbitrary_header_bytes_never_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Some((header, rest)) = Header::read(&bytes) {
                let own = if header.origin.is_some() { HEADER_MAX } else { HEADER_BYTES };
                prop_assert_eq!(own + rest.len(), bytes.len());
            }
        }
    }
}
