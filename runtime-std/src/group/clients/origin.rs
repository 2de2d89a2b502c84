//! The origin of a message in a subgroup that accepts clients, encoded in the last bytes of each
//! message.
//!
//! ```text
//! a member's message     payload, 0
//! a client's message     payload, id 8, incarnation 8, ordinal 8, 1
//! a client is attached   empty,   id 8, incarnation 8, source and whether it is new 8, 2
//! a lease ends           empty,   id 8, incarnation 8, attachments 8, 3
//! ```
//! The origin follows the payload, so that the payload stays aligned. A large message always comes
//! from a member, and has no origin bytes.

use tramontane_control::Source;
use tramontane_control::client_messages::{ClientId, ClientLife};

use crate::group::description::terms::SubgroupDescription;

/// The length in bytes of the origin that follows a client's message.
const CLIENT_TRAILER: usize = 25;

/// The origin of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The sending member itself.
    Member,
    /// A client, which numbers its messages.
    Client { life: ClientLife, ordinal: u64 },
    /// A control message: from here on, this client, which connected from this source, is attached
    /// to the sending member.
    Attach { life: ClientLife, is_new: bool, source: Source },
    /// A control message: the group forgets the client, unless it has since been attached again.
    LeaseEnds { life: ClientLife, attachments: u64 },
}

impl Origin {
    /// Returns the length of the encoding in bytes.
    #[inline(always)]
    pub(crate) const fn trailer(&self) -> usize {
        match self {
            Self::Member => 1,
            _ => CLIENT_TRAILER,
        }
    }

    /// Writes the encoding at the end of a message that has room for it.
    pub(crate) fn write_behind(&self, message: &mut [u8]) {
        let start = message.len().saturating_sub(self.trailer());
        let trailer = message.get_mut(start..).unwrap_or_default();
        let (life, number, kind) = match *self {
            Self::Member => return trailer.fill(0),
            Self::Client { life, ordinal } => (life, ordinal, 1),
            Self::Attach { life, is_new, source } => (life, source.0 << 1 | u64::from(is_new), 2),
            Self::LeaseEnds { life, attachments } => (life, attachments, 3),
        };
        let numbers = [life.id.0, life.incarnation, number];
        let bytes = numbers.into_iter().flat_map(u64::to_le_bytes).chain([kind]);
        trailer.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    }

    /// Splits a message into origin and payload. Returns `None` for a message that no member of
    /// this program sends.
    pub(crate) fn split(message: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, rest) = message.split_last()?;
        if *kind == 0 {
            return Some((Self::Member, rest));
        }
        let (rest, number) = rest.split_last_chunk()?;
        let (rest, incarnation) = rest.split_last_chunk()?;
        let (payload, id) = rest.split_last_chunk()?;
        let [id, incarnation, number] = [id, incarnation, number].map(|n| u64::from_le_bytes(*n));
        let life = ClientLife { id: ClientId(id), incarnation };
        let origin = match (*kind, number) {
            (1, ordinal) => Self::Client { life, ordinal },
            (2, number) if payload.is_empty() => {
                Self::Attach { life, is_new: number & 1 == 1, source: Source(number >> 1) }
            }
            (3, attachments) if payload.is_empty() => Self::LeaseEnds { life, attachments },
            _ => return None,
        };
        Some((origin, payload))
    }

    /// Returns the payload of a message that comes from a member.
    pub(crate) fn of_member(message: &[u8]) -> Option<&[u8]> {
        Self::split(message).filter(|(origin, _)| *origin == Self::Member).map(|(_, rest)| rest)
    }
}

impl SubgroupDescription {
    /// Returns the capacity of a slot in bytes.
    pub(crate) const fn slot_max(&self) -> u32 {
        let trailer = if self.clients { CLIENT_TRAILER as u32 } else { 0 };
        self.message_max.saturating_add(trailer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn origins() -> impl Strategy<Value = Origin> {
        let life = (any::<u64>(), any::<u64>())
            .prop_map(|(id, incarnation)| ClientLife { id: ClientId(id), incarnation });
        (life, any::<u64>(), 0..4).prop_map(|(life, number, kind)| match kind {
            0 => Origin::Member,
            1 => Origin::Client { life, ordinal: number },
            2 => {
                let source = Source(number >> 1);
                Origin::Attach { life, is_new: number & 1 == 1, source }
            }
            _ => Origin::LeaseEnds { life, attachments: number },
        })
    }

    proptest! {
        #[test]
        fn message_origin_round_trips(
            origin in origins(), payload: Vec<u8>,
        ) {
            let is_word = matches!(origin, Origin::Attach { .. } | Origin::LeaseEnds { .. });
            let payload = if is_word { Vec::new() } else { payload };
            let mut message = payload.clone();
            message.resize(payload.len() + origin.trailer(), 0xee);
            origin.write_behind(&mut message);
            prop_assert_eq!(Origin::split(&message), Some((origin, payload.as_slice())));
        }

        #[test]
        fn message_origin_parser_accepts_any_bytes(message: Vec<u8>) {
            if let Some((origin, payload)) = Origin::split(&message) {
                prop_assert_eq!(payload.len() + origin.trailer(), message.len());
            }
        }
    }

    #[test]
    fn invalid_message_origins_are_rejected() {
        assert_eq!(Origin::split(b""), None);
        assert_eq!(Origin::split(&[1; 24]), None, "too short for a client's");
        assert_eq!(Origin::split(&[4; 25]), None, "no such kind");
        let mut word = [7; 26];
        let life = ClientLife::default();
        Origin::Attach { life, is_new: true, source: Source(7) }.write_behind(&mut word);
        assert_eq!(Origin::split(&word), None, "word of a client has no payload");
    }
}
