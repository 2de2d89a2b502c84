//! A queue pair: its two halves, and the requests and receives posted to it.

use std::collections::VecDeque;

use super::agenda::CompletionEntry;
use super::link::PathPlace;
use super::request::{LocalBytes, PACKET_MASK, PostedRequest, ahead};
use crate::adapter::{Access, QueuePairLimits, QueuePairState, Route, SendTimes};
use crate::devices::mtu_bytes;

/// A queue pair.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) context: u64,
    pub(super) device: usize,
    pub(super) domain: u64,
    pub(super) queue: u64,
    pub(super) number: u32,
    pub(super) limits: QueuePairLimits,
    pub(super) state: QueuePairState,
    /// Number of times that all posts have been discarded.
    pub(super) epoch: u64,
    pub(super) port: u8,
    /// The partition's index in the port's table.
    pub(super) partition_index: u16,
    pub(super) access: Access,
    /// The receiver of the peer's requests; `None` while they are dropped.
    pub(super) responder: Option<Responder>,
    pub(super) requester: Requester,
    pub(super) receives: VecDeque<FakeReceive>,
}

/// A posted receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct FakeReceive {
    pub(super) name: u64,
    pub(super) into: Option<LocalBytes>,
}

impl Pair {
    pub(super) const fn place(&self) -> PathPlace {
        PathPlace { device: self.device, port: self.port }
    }
}

/// The state that a queue pair keeps about its remote end.
#[derive(Debug)]
pub(super) struct Responder {
    pub(super) route: Route,
    pub(super) expected: u32,
    /// Whether the sender has been told which packet is expected, and no packet has arrived since.
    pub(super) is_told: bool,
    /// The time by which everything received is in memory.
    pub(super) placed_by: u64,
    pub(super) answers_by: u64,
}

impl Responder {
    pub(super) const fn new(route: Route) -> Self {
        let expected = route.remote_packet & PACKET_MASK;
        Self { route, expected, is_told: false, placed_by: 0, answers_by: 0 }
    }
}

/// The number of retries for a peer without a receive, as this project's queue pairs are
/// configured.
const NOT_READY_RETRIES: u8 = 6;

/// The requests that a queue pair sends and for whose answers it waits.
#[derive(Debug, Default)]
pub(super) struct Requester {
    pub(super) way: Option<(Route, SendTimes)>,
    /// Unanswered requests, oldest first.
    pub(super) requests: VecDeque<PostedRequest>,
    /// Number of these requests that have been sent.
    pub(super) sent: usize,
    /// Number of these requests that are reads.
    pub(super) reads: usize,
    /// Number of requests posted so far.
    pub(super) posted: u64,
    /// Number of send queue slots freed so far: a slot is free once a completion of its request, or
    /// of a later one, is taken.
    pub(super) freed: u64,
    pub(super) next_packet: u32,
    pub(super) busy_until: u64,
    pub(super) arrives_by: u64,
    pub(super) retries: u8,
    pub(super) not_ready_retries: u8,
    pub(super) waits_for_receive: bool,
    pub(super) departs: bool,
    pub(super) timer: Option<CompletionEntry>,
}

impl Requester {
    /// Returns the destination and the retransmission times, once they are known.
    pub(super) const fn way(&self) -> Option<(Route, SendTimes)> {
        self.way
    }

    pub(super) fn new(route: Route, times: SendTimes) -> Self {
        Self {
            way: Some((route, times)),
            next_packet: times.first_packet & PACKET_MASK,
            retries: times.retries,
            not_ready_retries: NOT_READY_RETRIES,
            ..Self::default()
        }
    }

    pub(super) fn has_place(&self, sends_max: u32) -> bool {
        self.posted - self.freed < u64::from(sends_max)
    }

    pub(super) fn stop(&mut self) {
        (self.way, self.sent, self.reads) = (None, 0, 0);
    }

    pub(super) fn add(&mut self, mut request: PostedRequest) {
        let mtu = self.way.map_or(0, |(route, _)| mtu_bytes(route.mtu)).max(1);
        request.number = self.posted - 1;
        request.first_packet = self.next_packet;
        request.packets = request.length().div_ceil(mtu).max(1);
        self.next_packet = self.next_packet.wrapping_add(request.packets) & PACKET_MASK;
        self.requests.push_back(request);
    }

    /// Returns whether a packet has been sent and is unanswered, or is the one before the oldest
    /// unanswered packet.
    pub(super) fn knows(&self, packet: u32) -> bool {
        let oldest = self.requests.front().filter(|_| self.sent > 0);
        let newest = self.sent.checked_sub(1).and_then(|index| self.requests.get(index));
        oldest.zip(newest).is_some_and(|(oldest, newest)| {
            let before = oldest.first_packet.wrapping_sub(1);
            ahead(packet, before) <= ahead(newest.last_packet(), before)
        })
    }

    /// Marks all unanswered requests for retransmission.
    pub(super) fn rewind(&mut self) {
        (self.sent, self.reads) = (0, 0);
    }

    /// Restarts the retry counters after an answer.
    pub(super) fn progress(&mut self) {
        self.not_ready_retries = NOT_READY_RETRIES;
        self.retries = self.way.map_or(0, |(_, times)| times.retries);
    }
}
