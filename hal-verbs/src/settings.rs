//! How the fabric behaves, as far as somebody may want it otherwise.

use std::time::Duration;

/// Limits and promises. What is `None` is asked of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that may be in flight to one peer.
    pub depth: u32,
    /// At most so many requests go from one that is signalled to the next; at most half of the
    /// depth less [`RESERVE`].
    pub signal_every: u32,
    /// Bytes that go inline, if not as many as the device takes.
    pub inline_bytes_max: Option<u32>,
    /// Whether the bytes of one write become visible in the order of their addresses. No device
    /// says so of itself; by default it is not promised, and a message and its counter travel as
    /// two writes.
    pub address_order: Option<bool>,
    /// Whether a write that is completed can be seen at the other end. An acknowledgement says that
    /// the other adapter has it; whether it has passed the bus there is not said, so by default it
    /// is promised only by devices that are known to be software.
    pub completion_visible: Option<bool>,
    /// How the right to write to a region is taken back.
    pub revoke_by: RevokeBy,
    /// How long a peer may leave writes without an answer.
    pub loss_time: Duration,
}

/// How the right to write to a region is taken back (TRM-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RevokeBy {
    /// By the access flags of the queue pair, and where the device refuses, by a reset.
    Flags,
    /// By a reset of the queue pair: slower, and certain.
    #[default]
    Reset,
}

/// Requests a connection keeps for rings and their like.
pub const RESERVE: u32 = 8;

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 256,
            signal_every: 32,
            inline_bytes_max: None,
            address_order: None,
            completion_visible: None,
            revoke_by: RevokeBy::default(),
            loss_time: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// What the device takes of it: a depth that it has, and a rhythm that fits the depth. A list
    /// must always find room in an empty queue.
    #[must_use]
    pub fn within(&self, work_requests_max: u32) -> Self {
        const DEPTH_MIN: u32 = 64;
        let depth = self.depth.min(work_requests_max).max(DEPTH_MIN);
        let signal_every = self.signal_every.clamp(1, (depth - RESERVE) / 2);
        Self { depth, signal_every, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_brought_into_what_works() {
        let wild = Limits { depth: u32::MAX, signal_every: 0, ..Limits::default() };
        assert_eq!((wild.within(128).depth, wild.within(128).signal_every), (128, 1));
        let tiny = Limits { depth: 1, signal_every: 1000, ..Limits::default() };
        assert_eq!((tiny.within(16_384).depth, tiny.within(16_384).signal_every), (64, 28));
    }
}
