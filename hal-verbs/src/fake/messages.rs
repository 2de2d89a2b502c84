//! Requests and answers in flight.

use super::link::PathPlace;
use crate::adapter::Target;

/// A request in flight.
#[derive(Debug)]
pub(super) struct FakeMessage {
    /// The sending queue pair and its epoch at that time.
    pub(super) pair: u64,
    pub(super) epoch: u64,
    pub(super) from: PathPlace,
    pub(super) to: PathPlace,
    /// The numbers of the queue pairs.
    pub(super) sender: u32,
    pub(super) receiver: u32,
    pub(super) first_packet: u32,
    pub(super) packets: u32,
    /// The payload of the longest packet.
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
    /// All packets up to this one are done.
    Done(u32),
    /// The read of that packet is done, and so are all packets before it.
    Read { first_packet: u32, content: Vec<u8> },
    /// The request of that packet is refused, with a status; all before it are done.
    Refused { packet: u32, status: u32 },
    /// There is no receive for the request of that packet; all before it are done.
    NotReady(u32),
    /// That packet is expected; all before it are done.
    Expected(u32),
}
