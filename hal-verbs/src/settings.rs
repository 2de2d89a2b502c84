//! How the fabric behaves, as far as somebody may want it otherwise.

use std::time::Duration;

use tramontane_core::ids::{NodeId, ViewId};

/// Limits and promises. What is `None` is asked of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that may be in flight to one peer.
    pub depth: u32,
    /// At most so many requests go from one that is signalled to the next; at most half of the
    /// depth less [`RESERVE`].
    pub signal_every: u32,
    /// Bytes that go inline, as far as the device takes them; [`INLINE_BYTES_USUAL`] if left out.
    pub inline_bytes_max: Option<u32>,
    /// Whether writes to one peer become visible in the order in which they were posted. `None`: as
    /// the device says, see [`DeviceKind::order`]. An operator withdraws the promise with `false`
    /// where switches or adapters reorder packets, and makes it with `true` where they are known
    /// not to. The same at all members.
    ///
    /// [`DeviceKind::order`]: crate::devices::DeviceKind::order
    pub write_order: Option<bool>,
    /// Whether the fabric keeps that order itself where devices do not
    /// ([`WriteOrder::ByUpdates`]). Else such a device is refused.
    pub allow_updates: bool,
    /// Whether the bytes of one write become visible in the order of their addresses. No device
    /// says so of its peers; by default it is not promised, and a message and its counter travel as
    /// two writes. Never promised with [`WriteOrder::ByUpdates`].
    pub address_order: Option<bool>,
    /// Whether a write that is completed can be seen at the other end. An acknowledgement says that
    /// the other adapter has it; whether it has passed the bus there is not said, so by default it
    /// is promised only by devices that are known to be software. Never promised with
    /// [`WriteOrder::ByUpdates`].
    pub completion_visible: Option<bool>,
    /// What peers write to regions by.
    pub write_keys: WriteKeys,
    /// How long a peer may leave writes without an answer.
    pub loss_time: Duration,
    /// The least exponent of timeouts that the adapter's firmware takes, where it is known; smaller
    /// ones it raises to this. A cautious one is taken otherwise: see [`crate::timing`].
    pub timeout_exponent_floor: Option<u8>,
    /// Whether rows, regions and block memory are taken in huge pages, as far as the system has
    /// them: an adapter then keeps more of its tables at hand.
    pub huge_pages: bool,
    /// The completion vector of all views: which processor a sleeping member is woken on. If left
    /// out, members and views are spread over those of the device.
    pub completion_vector: Option<u32>,
}

/// What a peer writes to a region by, with a new key at each grant (TRM-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum WriteKeys {
    /// A registration of the region for that peer. The kernel makes and ends it, which takes longer
    /// the larger the region is; every device has them.
    #[default]
    Registrations,
    /// A memory window of type 2, for that peer's connection alone, bound and taken back by
    /// requests to the device. Where a device has none, or a trial at the start shows that one that
    /// was taken back lets writes through, registrations are taken.
    Windows,
}

/// What keeps the order of writes to one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteOrder {
    /// The devices: every write goes straight into the peer's copy of the row.
    #[default]
    ByDevice,
    /// The fabric, where devices may place writes in any order: long contents go straight into the
    /// copy, and what speaks for them, and all that is short, goes as one message a list behind
    /// them, an update. The peer's processor applies it when its receive completes.
    ByUpdates,
}

/// Requests a connection keeps for rings and their like.
pub const RESERVE: u32 = 8;

/// Bytes that go inline where nothing else is said. Guards and short messages fit; a longer write
/// is cheaper by reference, and each request of a queue takes room for as many. With these a
/// request fills 256 bytes of an adapter's ring.
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
            write_keys: WriteKeys::default(),
            loss_time: Duration::from_secs(1),
            timeout_exponent_floor: None,
            huge_pages: false,
            completion_vector: None,
        }
    }
}

impl Limits {
    /// Bytes that go inline, on a device that takes so many.
    #[must_use]
    pub fn inline_bytes_within(&self, device_max: u32) -> u32 {
        self.inline_bytes_max.unwrap_or(INLINE_BYTES_USUAL).min(device_max)
    }

    /// The completion vector of a member's view, on a device that has so many.
    #[must_use]
    pub fn vector_of(&self, member: NodeId, view: ViewId, vectors: u32) -> u32 {
        // Members of one host have ids of their own, and views follow each other.
        let spread = || u64::from(member.0).wrapping_add(view.0) % u64::from(vectors.max(1));
        self.completion_vector.unwrap_or_else(|| u32::try_from(spread()).unwrap_or(0))
    }

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

    #[test]
    fn no_more_goes_inline_than_short_messages_need() {
        let inline = |wanted, device_max| {
            Limits { inline_bytes_max: wanted, ..Limits::default() }.inline_bytes_within(device_max)
        };
        assert_eq!(inline(None, 1024), INLINE_BYTES_USUAL);
        assert_eq!((inline(None, 64), inline(Some(0), 1024)), (64, 0));
        assert_eq!((inline(Some(500), 1024), inline(Some(2000), 1024)), (500, 1024));
    }

    #[test]
    fn members_and_views_are_spread_over_the_completion_vectors() {
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
