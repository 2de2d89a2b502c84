//! Requests to a queue pair, and the numbers of their packets.

use crate::adapter::Operation;

/// Packet numbers have 24 bits.
pub(super) const PACKET_MASK: u32 = 0x00ff_ffff;

/// Returns by how much a packet's number is ahead of another.
pub(super) const fn ahead(packet: u32, of: u32) -> u32 {
    packet.wrapping_sub(of) & PACKET_MASK
}

/// Returns whether a packet's number equals another's or precedes it.
pub(super) const fn is_by(packet: u32, other: u32) -> bool {
    ahead(other, packet) <= PACKET_MASK / 2
}

/// A range of local memory, as a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalBytes {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) key: u32,
}

/// A posted request.
#[derive(Clone, Debug)]
pub(super) struct PostedRequest {
    pub(super) name: u64,
    pub(super) operation: Operation,
    pub(super) range: Option<LocalBytes>,
    pub(super) is_inline: bool,
    pub(super) is_signalled: bool,
    /// The content, if it was read at the post.
    pub(super) content: Option<Vec<u8>>,
    /// The earliest time at which the request may be executed.
    pub(super) not_before: u64,
    /// The request's number among all posts.
    pub(super) number: u64,
    pub(super) first_packet: u32,
    pub(super) packets: u32,
    /// The local error with which the request fails, if there is one.
    pub(super) failure: Option<u32>,
}

impl PostedRequest {
    pub(super) const fn new(name: u64, operation: Operation, range: Option<LocalBytes>) -> Self {
        Self {
            name,
            operation,
            range,
            is_inline: false,
            is_signalled: false,
            content: None,
            not_before: 0,
            number: 0,
            first_packet: 0,
            packets: 1,
            failure: None,
        }
    }

    pub(super) fn last_packet(&self) -> u32 {
        self.first_packet.wrapping_add(self.packets).wrapping_sub(1) & PACKET_MASK
    }

    pub(super) const fn is_read(&self) -> bool {
        matches!(self.operation, Operation::Read(_))
    }

    pub(super) fn length(&self) -> u32 {
        self.range.map_or(0, |range| range.length)
    }
}
