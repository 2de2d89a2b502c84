//! Reasons that a peer cannot be reached, if more is known than that it does not answer. Each text
//! is one line with the remedy.

use std::fmt;

use crate::devices::{LinkLayer, PartitionKey};

/// The reason that a peer is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// An empty write has been acknowledged, but a write of a full packet has not.
    FullPackets {
        /// The payload of a full packet in bytes.
        bytes: u32,
    },
    /// The two members are on networks of different kinds.
    LinkLayers {
        /// The link layer of this member's port.
        own: LinkLayer,
        /// The link layer of the peer's port.
        peer: LinkLayer,
    },
    /// No traffic flows between the two partitions.
    Partitions {
        /// This member's partition.
        own: PartitionKey,
        /// The peer's partition.
        peer: PartitionKey,
    },
    /// Devices keep the order of writes at one end, and updates at the other.
    WriteOrders,
    /// The peer's card is malformed, or describes different memory than it should.
    WrongCard,
    /// The device finds no path to the address that the peer announced.
    NoWay,
    /// This member's port has no link, or has just lost it.
    NoLink,
}

/// A payload that always passes, even if larger packets are not configured: it fits into an
/// Ethernet frame of 1500 bytes.
const MTU_EVERYWHERE: u32 = 1024;

impl fmt::Display for LossReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::FullPackets { bytes } => {
                let smaller = if bytes > MTU_EVERYWHERE { MTU_EVERYWHERE } else { 256 };
                write!(
                    out,
                    "small packets pass, but full ones of {bytes} B do not: check the MTU of the \
                     switches, or set the RDMA MTU to {smaller}"
                )
            }
            Self::LinkLayers { own, peer } => write!(
                out,
                "this member's port runs on {own}, but the peer's runs on {peer}: choose devices \
                 and ports on the same network"
            ),
            Self::Partitions { own, peer } => write!(
                out,
                "this member is in partition {own}, but the peer is in {peer}: give all members \
                 the same partition key, and make at least one of every two members a full member \
                 in the subnet manager"
            ),
            Self::WriteOrders => out.write_str(
                "the devices keep the order of writes at one end, and the fabric keeps it at the \
                 other: set the same RDMA order for all members, writes if all devices keep the \
                 order, otherwise none",
            ),
            Self::WrongCard => out
                .write_str("the peer announced unexpected memory: run the same program everywhere"),
            Self::NoLink => out.write_str(
                "this member's port lost its link: check the cable, the switch and the network \
                 interface (ip link)",
            ),
            Self::NoWay => out.write_str(
                "the device finds no path to the peer's address: choose addresses (GIDs) on the \
                 same network",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loss_reason_is_one_line_with_remedy() {
        let (own, peer) = (LinkLayer::InfiniBand, LinkLayer::Ethernet);
        let keys = (PartitionKey(0x8001), PartitionKey(0x8002));
        for (reason, words) in [
            (LossReason::FullPackets { bytes: 4096 }, "MTU to 1024"),
            (LossReason::FullPackets { bytes: 1024 }, "MTU to 256"),
            (LossReason::LinkLayers { own, peer }, "choose devices"),
            (LossReason::Partitions { own: keys.0, peer: keys.1 }, "partition key"),
            (LossReason::WrongCard, "same program"),
            (LossReason::NoWay, "GIDs"),
            (LossReason::NoLink, "cable"),
        ] {
            let text = reason.to_string();
            assert!(text.contains(words) && !text.contains('\n'), "{text}");
        }
    }
}
