//! The card that a member sends to each peer: it describes the address of the member's end of each
//! connection, and the memory that the peer may use.
//!
//! All fields have fixed sizes, with the least significant byte first. Every field is checked
//! before it is used. A card that does not fit is refused.

use std::net::Ipv6Addr;

use crate::devices::{LinkLayer, PartitionKey};
use crate::settings::WriteOrder;

/// Memory that the receiver of a card may use, alone or with the peers that have permission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LentMemory {
    pub(crate) address: u64,
    pub(crate) key: u32,
    pub(crate) bytes: u64,
}

/// The description of one connection's near end for its far end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CardLink {
    /// The queue pair's number; 24 bits.
    pub(crate) number: u32,
    /// The first packet's number; 24 bits.
    pub(crate) first_packet: u32,
    pub(crate) memory: LentMemory,
}

/// A member's card for one peer. Connections are in an order that both ends know: the row, the
/// regions, blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) gid: Ipv6Addr,
    pub(crate) lid: u16,
    pub(crate) mtu_bytes: u32,
    pub(crate) reads_max: u8,
    pub(crate) link_layer: LinkLayer,
    /// Whether the member's packets must carry a GID header on InfiniBand too.
    pub(crate) has_global_route: bool,
    pub(crate) partition: PartitionKey,
    /// The party that keeps the order of writes at this end. It must be the same at both ends.
    pub(crate) write_order: WriteOrder,
    pub(crate) links: Vec<CardLink>,
    /// Rings in the sender's copies of other members' rows, to which the peer passes on messages
    /// (REL-1). All cards of a view have the same number of places. A place that is not used is all
    /// zero.
    pub(crate) rings: Vec<LentMemory>,
}

const HEAD_BYTES: usize = 26;
const MEMORY_BYTES: usize = 20;
const LINK_BYTES: usize = 8 + MEMORY_BYTES;
const NUMBER_MAX: u32 = 0x00ff_ffff;

/// Bits in the network byte: the port's link layer, whether packets carry a GID header, and whether
/// updates keep the order of writes.
const INFINIBAND: u8 = 1;
const ETHERNET: u8 = 2;
const GLOBAL_ROUTE: u8 = 1 << 2;
const BY_UPDATES: u8 = 1 << 3;

impl Card {
    /// Returns the length of a card with `links` connections and places for `rings` rings.
    pub(crate) const fn bytes(links: usize, rings: usize) -> usize {
        HEAD_BYTES + LINK_BYTES * links + MEMORY_BYTES * rings
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::bytes(self.links.len(), self.rings.len()));
        bytes.extend_from_slice(&self.gid.octets());
        bytes.extend_from_slice(&self.lid.to_le_bytes());
        bytes.extend_from_slice(&self.mtu_bytes.to_le_bytes());
        bytes.push(self.reads_max);
        let layer = match self.link_layer {
            LinkLayer::InfiniBand => INFINIBAND,
            LinkLayer::Ethernet => ETHERNET,
        };
        let route = if self.has_global_route { GLOBAL_ROUTE } else { 0 };
        let order = match self.write_order {
            WriteOrder::ByDevice => 0,
            WriteOrder::ByUpdates => BY_UPDATES,
        };
        bytes.push(layer | route | order);
        bytes.extend_from_slice(&self.partition.0.to_le_bytes());
        for link in &self.links {
            bytes.extend_from_slice(&link.number.to_le_bytes());
            bytes.extend_from_slice(&link.first_packet.to_le_bytes());
            link.memory.encode(&mut bytes);
        }
        self.rings.iter().for_each(|ring| ring.encode(&mut bytes));
        bytes
    }

    /// Decodes a card. Returns `None` if the bytes are not a card with `links` connections and
    /// places for `rings` rings.
    pub(crate) fn decode(bytes: &[u8], links: usize, rings: usize) -> Option<Self> {
        let links_bytes = links.checked_mul(LINK_BYTES)?;
        let rest_bytes = rings.checked_mul(MEMORY_BYTES)?.checked_add(links_bytes)?;
        let (gid, rest) = bytes.split_first_chunk::<16>()?;
        let (lid, rest) = rest.split_first_chunk()?;
        let (mtu_bytes, rest) = rest.split_first_chunk()?;
        let ([reads_max, network], rest) = rest.split_first_chunk()?;
        let (partition, mut rest) = rest.split_first_chunk()?;
        let link_layer = match network & !(GLOBAL_ROUTE | BY_UPDATES) {
            INFINIBAND => LinkLayer::InfiniBand,
            ETHERNET => LinkLayer::Ethernet,
            _ => return None,
        };
        let mtu_bytes = u32::from_le_bytes(*mtu_bytes);
        let by_updates = network & BY_UPDATES != 0;
        let write_order = if by_updates { WriteOrder::ByUpdates } else { WriteOrder::ByDevice };
        if rest.len() != rest_bytes || !matches!(mtu_bytes, 256 | 512 | 1024 | 2048 | 4096) {
            return None;
        }
        let mut decoded = Vec::with_capacity(links);
        for _ in 0..links {
            let (link, after) = decode_link(rest)?;
            decoded.push(link);
            rest = after;
        }
        let mut lent = Vec::with_capacity(rings);
        for _ in 0..rings {
            let (ring, after) = LentMemory::decode(rest)?;
            lent.push(ring);
            rest = after;
        }
        Some(Self {
            gid: Ipv6Addr::from(*gid),
            lid: u16::from_le_bytes(*lid),
            mtu_bytes,
            reads_max: *reads_max,
            link_layer,
            has_global_route: network & GLOBAL_ROUTE != 0,
            partition: PartitionKey(u16::from_le_bytes(*partition)),
            write_order,
            links: decoded,
            rings: lent,
        })
    }
}

impl LentMemory {
    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.address.to_le_bytes());
        to.extend_from_slice(&self.key.to_le_bytes());
        to.extend_from_slice(&self.bytes.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (address, rest) = bytes.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let memory = Self {
            address: u64::from_le_bytes(*address),
            key: u32::from_le_bytes(*key),
            bytes: u64::from_le_bytes(*length),
        };
        memory.address.checked_add(memory.bytes).map(|_| (memory, rest))
    }
}

fn decode_link(bytes: &[u8]) -> Option<(CardLink, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    let (first_packet, rest) = rest.split_first_chunk()?;
    let (memory, rest) = LentMemory::decode(rest)?;
    let (number, first_packet) = (u32::from_le_bytes(*number), u32::from_le_bytes(*first_packet));
    let fits = number <= NUMBER_MAX && first_packet <= NUMBER_MAX;
    fits.then_some((CardLink { number, first_packet, memory }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset of the network byte.
    const NETWORK_AT: usize = 23;

    fn card() -> Card {
        let link = CardLink {
            number: 17,
            first_packet: 0x00ab_cdef,
            memory: LentMemory { address: 1 << 46, key: 9, bytes: 8192 },
        };
        Card {
            gid: "::ffff:10.9.0.1".parse().expect("an address"),
            lid: 3,
            mtu_bytes: 1024,
            reads_max: 4,
            link_layer: LinkLayer::InfiniBand,
            has_global_route: true,
            partition: PartitionKey(0x8001),
            write_order: WriteOrder::ByUpdates,
            links: vec![link, CardLink { number: 18, ..link }],
            rings: vec![LentMemory { address: 1 << 45, key: 7, bytes: 640 }, LentMemory::default()],
        }
    }

    #[test]
    fn cards_round_trip() {
        assert_eq!(Card::decode(&card().encode(), 2, 2), Some(card()));
        assert_eq!(card().encode().len(), Card::bytes(2, 2));
        let other = Card { link_layer: LinkLayer::Ethernet, has_global_route: false, ..card() };
        assert_eq!(Card::decode(&other.encode(), 2, 2), Some(other));
    }

    #[test]
    fn malformed_cards_are_refused() {
        let bytes = card().encode();
        for length in 0..bytes.len() {
            assert_eq!(Card::decode(&bytes[..length], 2, 2), None);
        }
        assert_eq!(Card::decode(&bytes, 1, 2), None);
        assert_eq!(Card::decode(&bytes, 2, 3), None);
        assert_eq!(Card::decode(&bytes, usize::MAX, 2), None);
        let wrong = |change: fn(&mut Card)| {
            let mut card = card();
            change(&mut card);
            assert_eq!(Card::decode(&card.encode(), 2, 2), None);
        };
        for network in [0, 3, 4, 8, 16 | ETHERNET] {
            let mut bytes = card().encode();
            bytes[NETWORK_AT] = network;
            assert_eq!(Card::decode(&bytes, 2, 2), None, "{network}");
        }
        wrong(|card| card.mtu_bytes = 1000);
        wrong(|card| card.links[1].number = 1 << 24);
        wrong(|card| card.links[0].memory.address = u64::MAX);
        wrong(|card| card.rings[0].address = u64::MAX);
    }
}
