//! Settings of the fabric.

use std::time::Duration;

use tramontane_core::ids::{NodeId, ViewId};

/// Limits and promises. If one is `None`, the device decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of requests in flight to one peer.
    pub depth: u32,
    /// Maximum number of requests from one signalled request to the next; at most half of the depth
    /// less [`RESERVE`].
    pub signal_every: u32,
    /// Maximum number of bytes to send inline, limited by the device; [`INLINE_BYTES_USUAL`] by
    /// default.
    pub inline_bytes_max: Option<u32>,
    /// Whether writes to one peer become visible in the order in which they were posted. If `None`,
    /// the device's answer is used: see [`DeviceKind::order`]. An operator sets this to `false` if
    /// switches or NICs reorder packets, and to `true` if they are known not to do so. All members
    /// must agree.
    ///
    /// [`DeviceKind::order`]: crate::devices::DeviceKind::order
    pub write_order: Option<bool>,
    /// Whether the fabric keeps that order itself if devices do not ([`WriteOrder::ByUpdates`]). If
    /// false, a device that does not keep the order is refused.
    pub allow_updates: bool,
    /// Whether the bytes of one write become visible in the order of their addresses. No device can
    /// say this of its peers' devices. By default it is not promised, and a message and its counter
    /// are sent as two writes. It is never promised with [`WriteOrder::ByUpdates`].
    pub address_order: Option<bool>,
    /// Whether a completed write is visible at the other end. An acknowledgement says that the
    /// remote NIC has the write, not that the write has crossed the bus there. By default, only
    /// known software devices promise this. It is never promised with [`WriteOrder::ByUpdates`].
    pub completion_visible: Option<bool>,
    /// Time for which a peer may leave writes unanswered.
    pub loss_time: Duration,
    /// The lowest timeout exponent that the NIC's firmware uses, if it is known; the firmware
    /// raises smaller exponents to it. The default is a cautious value: see [`crate::timing`].
    pub timeout_exponent_floor: Option<u8>,
    /// Whether rows, regions and block memory use huge pages, as far as the system has any: a NIC
    /// can then cache more of its tables.
    pub huge_pages: bool,
    /// The completion vector of all views, which decides the processor that wakes a sleeping
    /// member. By default, members and views are spread over the device's vectors.
    pub completion_vector: Option<u32>,
}

/// The party that keeps the order of writes to one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteOrder {
    /// The devices: every write goes straight into the peer's copy of the row.
    #[default]
    ByDevice,
    /// The fabric, for devices that may place writes in any order. Long contents go straight into
    /// the copy. The guards and all short contents follow as one message per list, an update, which
    /// the peer's processor applies when its receive completes.
    ByUpdates,
}

/// Number of requests that each connection reserves for rings and similar messages.
pub const RESERVE: u32 = 8;

/// The default for the number of bytes to send inline. Guards and short messages fit. A longer
/// write is cheaper by reference, and every request of a queue takes room for this many bytes. With
/// this value, a request fills 256 bytes of a NIC's ring.
pub const INLINE_BYTES_USUAL: u32 = 220;

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 128,
            signal_every: 32,
            inline_bytes_max: None,
            write_order: None,
            allow_updates: true,
            address_order: None,
            completion_visible: None,
            loss_time: Duration::from_secs(1),
            timeout_exponent_floor: None,
            huge_pages: false,
            completion_vector: None,
        }
    }
}

impl Limits {
    /// Returns the number of bytes to send inline on a device that supports at most `device_max`.
    #[must_use]
    pub fn inline_bytes_within(&self, device_max: u32) -> u32 {
        self.inline_bytes_max.unwrap_or(INLINE_BYTES_USUAL).min(device_max)
    }

    /// Returns the completion vector for a member's view on a device with `vectors` vectors.
    #[must_use]
    pub fn vector_of(&self, member: NodeId, view: ViewId, vectors: u32) -> u32 {
        // Members on one host have distinct ids, and views have consecutive numbers.
        let spread = || u64::from(member.0).wrapping_add(view.0) % u64::from(vectors.max(1));
        self.completion_vector.unwrap_or_else(|| u32::try_from(spread()).unwrap_or(0))
    }

    /// Adapts the limits to the device: a depth that it supports, and a signalling interval that
    /// fits the depth. An empty queue must always have room for a list.
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
    fn limits_are_clamped_to_device_capabilities() {
        let wild = Limits { depth: u32::MAX, signal_every: 0, ..Limits::default() };
        assert_eq!((wild.within(128).depth, wild.within(128).signal_every), (128, 1));
        let tiny = Limits { depth: 1, signal_every: 1000, ..Limits::default() };
        assert_eq!((tiny.within(16_384).depth, tiny.within(16_384).signal_every), (64, 28));
    }

    #[test]
    fn inline_size_is_limited_by_default_and_device() {
        let inline = |wanted, device_max| {
            Limits { inline_bytes_max: wanted, ..Limits::default() }.inline_bytes_within(device_max)
        };
        assert_eq!(inline(None, 1024), INLINE_BYTES_USUAL);
        assert_eq!((inline(None, 64), inline(Some(0), 1024)), (64, 0));
        assert_eq!((inline(Some(500), 1024), inline(Some(2000), 1024)), (500, 1024));
    }

    #[test]
    fn members_and_views_spread_over_completion_vectors() {
        let vector =
            |limits: &Limits, member, view| limits.vector_of(NodeId(member), ViewId(view), 4);
        let usual = Limits::default();
        let of_members: Vec<u32> = (10..14).map(|member| vector(&usual, member, 1)).collect();
        let of_views: Vec<u32> = (1..5).map(|view| vector(&usual, 10, view)).collect();
        for mut vectors in [of_members, of_views] {
            vectors.sort_unstable();
            assert_eq!(vectors, [0, 1, 2, 3]);
        }
        let given = Limits { completion_vector: Some(3), ..Limits::default() };
        assert!((10..14).all(|member| vector(&given, member, 1) == 3));
        assert_eq!(usual.vector_of(NodeId(9), ViewId(9), 0), 0);
    }
}
