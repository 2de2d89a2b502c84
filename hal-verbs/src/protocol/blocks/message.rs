//! The wire format of messages about blocks. A message has a fixed size, with the least significant
//! byte first. Fields that a kind of message does not use are zero.

use tramontane_core::fabric::Channel;

/// The size of every message in bytes.
pub(crate) const MESSAGE_BYTES: usize = 40;

/// An address that the peer has offered for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfferedAddress {
    pub(crate) address: u64,
    pub(crate) key: u32,
    pub(crate) length: u32,
}

/// A message about a channel; see the table of [`super`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelMessage {
    Offer { serial: u64, place: OfferedAddress },
    Written { serial: u64, number: u32, length: u32 },
    Asked { serial: u64 },
    Refused,
    Over,
    Credit,
}

/// A message together with the fields that every message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The total number of messages that its sender has processed.
    pub(crate) taken: u64,
    /// The channel; for a `Credit`, the first channel.
    pub(crate) channel: Channel,
    pub(crate) message: ChannelMessage,
}

/// All fields in wire order.
#[derive(Default)]
struct Fields {
    kind: u16,
    channel: u16,
    length: u32,
    taken: u64,
    serial: u64,
    address: u64,
    /// A key, or a block's number.
    word: u32,
}

impl Envelope {
    pub(crate) fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let blank = Fields { channel: self.channel.0, taken: self.taken, ..Fields::default() };
        let fields = match self.message {
            ChannelMessage::Offer { serial, place: OfferedAddress { address, key, length } } => {
                Fields { kind: 1, serial, address, word: key, length, ..blank }
            }
            ChannelMessage::Written { serial, number, length } => {
                Fields { kind: 2, serial, word: number, length, ..blank }
            }
            ChannelMessage::Asked { serial } => Fields { kind: 3, serial, ..blank },
            ChannelMessage::Refused => Fields { kind: 4, ..blank },
            ChannelMessage::Over => Fields { kind: 5, ..blank },
            ChannelMessage::Credit => Fields { kind: 6, ..blank },
        };
        fields.encode()
    }

    /// Decodes a message. Returns `None` if no correct member sends it.
    pub(crate) fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Option<Self> {
        let fields = Fields::decode(bytes)?;
        let Fields { kind, channel, length, taken, serial, address, word } = fields;
        let message = match kind {
            1 => ChannelMessage::Offer {
                serial,
                place: OfferedAddress { address, key: word, length },
            },
            2 => ChannelMessage::Written { serial, number: word, length },
            3 => ChannelMessage::Asked { serial },
            4 => ChannelMessage::Refused,
            5 => ChannelMessage::Over,
            6 => ChannelMessage::Credit,
            _ => return None,
        };
        let envelope = Self { taken, channel: Channel(channel), message };
        let ends = address.checked_add(u64::from(length)).is_some();
        (ends && envelope.encode() == *bytes).then_some(envelope)
    }
}

impl Fields {
    fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        let fields: [&[u8]; 7] = [
            &self.kind.to_le_bytes(),
            &self.channel.to_le_bytes(),
            &self.length.to_le_bytes(),
            &self.taken.to_le_bytes(),
            &self.serial.to_le_bytes(),
            &self.address.to_le_bytes(),
            &self.word.to_le_bytes(),
        ];
        for (into, byte) in bytes.iter_mut().zip(fields.into_iter().flatten()) {
            *into = *byte;
        }
        bytes
    }

    fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Option<Self> {
        let (kind, rest) = bytes.split_first_chunk()?;
        let (channel, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (taken, rest) = rest.split_first_chunk()?;
        let (serial, rest) = rest.split_first_chunk()?;
        let (address, rest) = rest.split_first_chunk()?;
        let (word, _) = rest.split_first_chunk()?;
        Some(Self {
            kind: u16::from_le_bytes(*kind),
            channel: u16::from_le_bytes(*channel),
            length: u32::from_le_bytes(*length),
            taken: u64::from_le_bytes(*taken),
            serial: u64::from_le_bytes(*serial),
            address: u64::from_le_bytes(*address),
            word: u32::from_le_bytes(*word),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Envelope> {
        let place = OfferedAddress { address: 1 << 46, key: 0x1234_5678, length: 1 << 20 };
        [
            ChannelMessage::Offer { serial: 77, place },
            ChannelMessage::Written { serial: u64::MAX, number: u32::MAX, length: 0 },
            ChannelMessage::Asked { serial: 3 },
            ChannelMessage::Refused,
            ChannelMessage::Over,
            ChannelMessage::Credit,
        ]
        .map(|message| Envelope { taken: 9 << 40, channel: Channel(1023), message })
        .to_vec()
    }

    #[test]
    fn block_messages_round_trip() {
        for envelope in samples() {
            assert_eq!(Envelope::decode(&envelope.encode()), Some(envelope));
        }
    }

    #[test]
    fn malformed_block_messages_are_refused() {
        assert_eq!(Envelope::decode(&[0; MESSAGE_BYTES]), None);
        assert_eq!(Envelope::decode(&[0xff; MESSAGE_BYTES]), None);
        for envelope in samples() {
            let mut bytes = envelope.encode();
            bytes[MESSAGE_BYTES - 1] = 1;
            assert_eq!(Envelope::decode(&bytes), None, "behind the last field");
        }
        let mut over = samples()[4].encode();
        over[16] = 1;
        assert_eq!(Envelope::decode(&over), None, "it has no serial");
        let mut offer = samples()[0].encode();
        offer[24..32].fill(0xff);
        assert_eq!(Envelope::decode(&offer), None, "it ends beyond all addresses");
    }
}
