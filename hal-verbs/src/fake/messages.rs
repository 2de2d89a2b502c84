//! Requests and answers in flight.

use super::link::PathPlace;
use crate::adapter::Target;

/// A request in flight.
#[derive(Debug)]
pub(super) struct FakeMessage {
    /// The sending queue pair, and its epoch when the request was sent.
    pub(super) pair: u64,
    pub(super) epoch: u64,
    pub(super) from: PathPlace,
    pub(super) to: PathPlace,
    /// The numbers of the sending and the receiving queue pair.
    pub(super) sender: u32,
    pub(super) receiver: u32,
    pub(super) first_packet: u32,
    pub(super) packets: u32,
    /// The payload of the request's longest packet.
    pub(super) packet_bytes: u32,
    pub(super) body: Body,
}

/// The operation of a request.
#[derive(Debug)]
pub(super) enum Body {
    Write { target: Target, content: Vec<u8>, immediate: Option<u32> },
    Read { target: Target, length: u32 },
    Send { content: Vec<u8> },
}

/// An answer to a sender.
#[derive(Debug)]
pub(super) struct FakeAnswer {
    pub(super) pair: u64,
    pub(super) epoch: u64,
    pub(super) from: PathPlace,
    pub(super) says: Says,
}

/// The content of an answer.
#[derive(Debug)]
pub(super) enum Says {
    /// All packets up to this one have been processed.
    Done(u32),
    /// The read of that packet has been processed, and so have all packets before it.
    Read { first_packet: u32, content: Vec<u8> },
    /// The request of that packet is refused with a status. All packets before it have been
    /// processed.
    Refused { packet: u32, status: u32 },
    /// There is no receive for the request of that packet. All packets before it have been
    /// processed.
    NotReady(u32),
    /// That packet is the next one expected. All packets before it have been processed.
    Expected(u32),
}
