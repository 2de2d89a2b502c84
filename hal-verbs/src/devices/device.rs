//! Devices, their ports and addresses as plain data.

use std::fmt;
use std::net::Ipv6Addr;

use serde::Serialize;

use super::interface::Interface;
use super::order::{DataInOrder, DeviceKind, Order};
use super::partition::Partition;
use super::transport::Transport;

/// All devices of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Devices {
    /// The devices, in the kernel's order.
    pub devices: Vec<Device>,
}

/// An RDMA device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// The device's name in `/sys/class/infiniband`.
    pub name: String,
    /// The kind of device, as far as known.
    pub kind: DeviceKind,
    /// The vendor's number.
    pub vendor_id: u32,
    /// The vendor's number for the part.
    pub vendor_part_id: u32,
    /// The firmware's version, if the device has firmware.
    pub firmware: String,
    /// The node's permanent GUID, in hexadecimal.
    pub node_guid: String,
    /// The device's transport.
    pub transport: Transport,
    /// The device's limits.
    pub limits: DeviceLimits,
    /// The number of completion vectors, that is, of interrupts over which completions can be
    /// spread.
    pub completion_vectors: u32,
    /// The device's answer about the order of the bytes within each write. Software drivers are not
    /// queried.
    pub data_in_order: DataInOrder,
    /// The order that the device guarantees.
    pub order: Order,
    /// The device's ports, numbered from 1.
    pub ports: Vec<Port>,
}

/// The limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceLimits {
    /// Queue pairs.
    pub queue_pairs_max: u32,
    /// Maximum number of requests per queue pair.
    pub work_requests_max: u32,
    /// Maximum number of ranges per request.
    pub ranges_max: u32,
    /// Maximum number of entries per completion queue.
    pub completion_entries_max: u32,
    /// Registered ranges.
    pub memory_regions_max: u32,
    /// Maximum size of a registration in bytes.
    pub region_bytes_max: u64,
    /// Maximum number of reads in flight with one peer.
    pub reads_max: u32,
    /// Maximum number of bytes sent inline. It is found by trial, because no device reports it.
    pub inline_bytes_max: u32,
}

/// One port of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    /// The port's number.
    pub number: u8,
    /// Whether traffic can flow.
    pub state: PortState,
    /// The port's link layer.
    pub link_layer: LinkLayer,
    /// The port's local identifier; zero on Ethernet only.
    pub lid: u16,
    /// The largest packet payload in use, in bytes.
    pub mtu_bytes: u32,
    /// The largest packet payload that the port supports, in bytes.
    pub mtu_bytes_max: u32,
    /// Maximum message size in bytes.
    pub message_bytes_max: u32,
    /// Whether all packets must carry a GID header (GRH) although the link layer is not Ethernet.
    pub needs_global_route: bool,
    /// The port's addresses; empty table entries are omitted.
    pub gids: Vec<Gid>,
    /// The network interfaces on the port.
    pub interfaces: Vec<Interface>,
    /// The port's partitions; empty table entries are omitted.
    pub partitions: Vec<Partition>,
}

/// A port's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortState {
    /// No link.
    Down,
    /// The link is up, but the port is not configured yet.
    Initialising,
    /// The port is configured, but not in use.
    Armed,
    /// Traffic flows.
    Active,
    /// Traffic flows, but the link has errors.
    Deferred,
    /// The kernel reports an unknown state.
    Unknown,
}

impl PortState {
    /// Converts a value of `enum ibv_port_state`.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        match raw {
            1 => Self::Down,
            2 => Self::Initialising,
            3 => Self::Armed,
            4 => Self::Active,
            5 => Self::Deferred,
            _ => Self::Unknown,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Initialising => "initialising",
            Self::Armed => "armed",
            Self::Active => "active",
            Self::Deferred => "deferred",
            Self::Unknown => "unknown",
        }
    }
}

/// The link layer of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkLayer {
    /// InfiniBand, with local identifiers.
    InfiniBand,
    /// Ethernet: RoCE or iWARP.
    Ethernet,
}

impl fmt::Display for LinkLayer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
        })
    }
}

/// An entry of a port's address table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gid {
    /// The index by which connections name the entry.
    pub index: u8,
    /// The packet format used with this address.
    pub kind: GidKind,
    /// The address; IPv4 addresses are mapped to IPv6.
    pub address: Ipv6Addr,
}

/// The packet format of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GidKind {
    /// InfiniBand's own packet format.
    InfiniBand,
    /// RoCE, not routable.
    RoceV1,
    /// RoCE over UDP.
    RoceV2,
}

impl fmt::Display for GidKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::InfiniBand => "InfiniBand",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
        })
    }
}

/// Converts a value of `enum ibv_mtu` to bytes; unknown values give zero.
#[must_use]
pub const fn mtu_bytes(raw: u32) -> u32 {
    match raw {
        1..=5 => 128 << raw,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mtu_codes_map_to_standard_packet_sizes() {
        assert_eq!([1, 2, 3, 4, 5].map(mtu_bytes), [256, 512, 1024, 2048, 4096]);
        assert_eq!([0, 6, u32::MAX].map(mtu_bytes), [0; 3]);
    }
}
