//! Transports of devices, and which of them the fabric supports.
//!
//! The fabric needs reliable connections, writes with an immediate value, 24-bit queue pair and
//! packet numbers, and paths given by LID or GID. InfiniBand and RoCE have all of these. Other
//! transports offer some of them through the same library and would fail late with obscure errors,
//! so they are refused by name.

use serde::Serialize;

/// The transport of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// InfiniBand's transport: over InfiniBand itself, or over Ethernet as RoCE.
    #[default]
    InfiniBand,
    /// iWARP: RDMA over TCP, without writes that carry an immediate value.
    Iwarp,
    /// Omni-Path, whose driver emulates InfiniBand and whose addresses are longer.
    OmniPath,
    /// Amazon's Elastic Fabric Adapter: datagrams, without reliable connections.
    Efa,
    /// Cisco's usNIC: datagrams only.
    UsNic,
    /// Another transport, or one that the library does not know.
    Unknown,
}

/// `enum ibv_transport_type` in `<infiniband/verbs.h>`.
const RAW_INFINIBAND: i32 = 0;
const RAW_IWARP: i32 = 1;
const RAW_USNIC: i32 = 2;
const RAW_USNIC_UDP: i32 = 3;

/// Vendor numbers, and the part numbers of a vendor that also made InfiniBand NICs.
const VENDOR_AMAZON: u32 = 0x1d0f;
const VENDOR_INTEL_OMNI_PATH: u32 = 0x1175;
const PARTS_OMNI_PATH: [u32; 2] = [0x24f0, 0x24f1];

impl Transport {
    /// Determines the transport from the library's `enum ibv_transport_type` and the device's
    /// vendor and part numbers.
    #[must_use]
    pub fn from_raw(transport: i32, vendor_id: u32, vendor_part_id: u32) -> Self {
        match transport {
            RAW_INFINIBAND
                if vendor_id == VENDOR_INTEL_OMNI_PATH
                    && PARTS_OMNI_PATH.contains(&vendor_part_id) =>
            {
                Self::OmniPath
            }
            RAW_INFINIBAND => Self::InfiniBand,
            RAW_IWARP => Self::Iwarp,
            RAW_USNIC | RAW_USNIC_UDP => Self::UsNic,
            _ if vendor_id == VENDOR_AMAZON => Self::Efa,
            _ => Self::Unknown,
        }
    }

    /// Returns whether the fabric supports the transport.
    #[must_use]
    pub const fn is_carried(self) -> bool {
        matches!(self, Self::InfiniBand)
    }

    /// Returns the transport's common name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InfiniBand => "InfiniBand or RoCE",
            Self::Iwarp => "iWARP",
            Self::OmniPath => "Omni-Path",
            Self::Efa => "EFA",
            Self::UsNic => "usNIC",
            Self::Unknown => "an unknown transport",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_is_identified_by_library_and_vendor_numbers() {
        for (raw, vendor, part, transport) in [
            (0, 0x02c9, 4125, Transport::InfiniBand),
            (0, 0x00ff_ffff, 0, Transport::InfiniBand),
            // InfiniBand NICs of the same vendor.
            (0, 0x1175, 0x7322, Transport::InfiniBand),
            (0, 0x1175, 0x24f0, Transport::OmniPath),
            (1, 0x0062_6d74, 0, Transport::Iwarp),
            (2, 0x1137, 0, Transport::UsNic),
            (3, 0x1137, 0, Transport::UsNic),
            (4, 0x1d0f, 0xefa0, Transport::Efa),
            (4, 0x9999, 0, Transport::Unknown),
            (-1, 0x02c9, 4125, Transport::Unknown),
        ] {
            assert_eq!(Transport::from_raw(raw, vendor, part), transport, "{raw} {vendor:#x}");
            assert_eq!(transport.is_carried(), transport == Transport::InfiniBand);
        }
    }
}
