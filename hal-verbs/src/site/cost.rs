//! The cost of a view in device objects and memory, for reports.

use std::fmt;

/// The objects created for a view on one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewCost {
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Number of entries of the completion queue.
    pub completion_entries: u32,
    /// Number of memory registrations.
    pub registrations: u32,
    /// Bytes registered.
    pub registered_bytes: u64,
    /// Size, in bytes, of the send rings as NICs lay them out. This memory is locked too.
    pub send_ring_bytes: u64,
}

impl fmt::Display for ViewCost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} queue pairs with {} KiB of send rings, {} completion entries, {} registrations of \
             {} KiB",
            self.queue_pairs,
            self.send_ring_bytes.div_ceil(1024),
            self.completion_entries,
            self.registrations,
            self.registered_bytes.div_ceil(1024)
        )
    }
}

/// Returns the size, in bytes, of a queue pair's send ring for `depth` requests with
/// `inline_bytes_max` inline bytes each.
///
/// Most NICs lay a request out as 36 bytes of control data followed by the inline bytes, in units
/// of 64 bytes, and round the number of units up to a power of two.
pub(crate) fn send_ring_bytes(depth: u32, inline_bytes_max: u32) -> u64 {
    const HEAD_BYTES: u64 = 36;
    const UNIT_BYTES: u64 = 64;
    let request = (HEAD_BYTES + u64::from(inline_bytes_max)).next_multiple_of(UNIT_BYTES);
    (u64::from(depth) * request).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::settings::INLINE_BYTES_USUAL;

    #[test]
    fn send_ring_size_rounds_up_to_whole_units() {
        assert_eq!(send_ring_bytes(64, 28), 64 * 64);
        assert_eq!(send_ring_bytes(64, 29), 64 * 128);
        assert_eq!(send_ring_bytes(128, 220), 128 * 256);
        assert_eq!(send_ring_bytes(0, 0), 1);
    }

    /// With blocks and 64 members, the size used to be 18 MiB: 256 requests with 1024 inline bytes
    /// to each peer.
    #[test]
    fn rings_for_64_members_use_under_4_mib() {
        let depth = Limits::default().depth;
        let a_peer = send_ring_bytes(depth, INLINE_BYTES_USUAL) + send_ring_bytes(depth, 40);
        assert!(63 * a_peer < 4 << 20, "{a_peer} bytes a peer");
    }

    #[test]
    fn view_cost_prints_on_one_line() {
        let cost = ViewCost {
            queue_pairs: 126,
            completion_entries: 9,
            registrations: 250,
            registered_bytes: 4097,
            send_ring_bytes: 3 << 20,
        };
        let text = cost.to_string();
        assert!(
            text.contains("126 queue pairs with 3072 KiB") && text.contains("of 5 KiB"),
            "{text}"
        );
    }
}
