//! RDMA devices as data: the machine's devices, and the choice of a port, address and packet size
//! (HAL-3).
//!
//! [`Devices`] is plain data that can be printed as a table or serialised. [`Devices::discover`]
//! fills it from the machine.

mod again;
pub(crate) mod ask;
mod choice;
pub(crate) mod discover;
mod interface;
mod order;
mod partition;
mod transport;

use std::fmt;
use std::net::Ipv6Addr;

use serde::Serialize;

pub(crate) use again::choose_again;
pub use choice::{Choice, ChoiceError, GidChoice, SERVICE_LEVEL_MAX, Service, Wanted};
pub use interface::Interface;
pub(crate) use interface::on_port;
pub use order::Order;
pub use partition::{Partition, PartitionKey};
pub use transport::Transport;

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
    /// The kind of device, as far as it is known.
    pub kind: DeviceKind,
    /// The vendor's number.
    pub vendor_id: u32,
    /// The vendor's number for the part.
    pub vendor_part_id: u32,
    /// The firmware's version, if it has one.
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
    /// asked.
    pub data_in_order: DataInOrder,
    /// The device's promises about order.
    pub order: Order,
    /// The device's ports, numbered from 1.
    pub ports: Vec<Port>,
}

/// The kind of a device: a known software driver, or hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// Software RoCE (`rdma_rxe`).
    SoftRoce,
    /// Software iWARP (`siw`).
    SoftIwarp,
    /// Hardware, as far as is known.
    Adapter,
}

impl DeviceKind {
    /// Determines the kind from a vendor number. The two software drivers have numbers of their
    /// own.
    #[must_use]
    pub const fn from_vendor(vendor_id: u32) -> Self {
        match vendor_id {
            0x00ff_ffff => Self::SoftRoce,
            0x0062_6d74 => Self::SoftIwarp,
            _ => Self::Adapter,
        }
    }
}

/// A device's answer to the question whether the bytes of writes are placed in order
/// (`ibv_query_qp_data_in_order`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataInOrder {
    /// The bytes are placed in order.
    Yes,
    /// No promise. Drivers that do not implement the question answer this too.
    No,
    /// The library does not implement the question.
    #[default]
    NotKnown,
}

/// The limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceLimits {
    /// Queue pairs.
    pub queue_pairs_max: u32,
    /// Requests per queue pair.
    pub work_requests_max: u32,
    /// Ranges per request.
    pub ranges_max: u32,
    /// Entries per completion queue.
    pub completion_entries_max: u32,
    /// Registered ranges.
    pub memory_regions_max: u32,
    /// Bytes per registration.
    pub region_bytes_max: u64,
    /// Reads of one peer in flight.
    pub reads_max: u32,
    /// Bytes that fit inline: found by trial, because no device reports it.
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
    /// The longest message in bytes.
    pub message_bytes_max: u32,
    /// Whether all packets must carry a GID header (GRH) although the link layer is not Ethernet.
    pub needs_global_route: bool,
    /// The port's addresses; empty table entries are left out.
    pub gids: Vec<Gid>,
    /// The network interfaces on the port.
    pub interfaces: Vec<Interface>,
    /// The port's partitions; empty table entries are left out.
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
    /// The kernel reports a state that is unknown here.
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

    const fn name(self) -> &'static str {
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

/// Prints the table of `tramontane verbs devices`.
impl fmt::Display for Devices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.devices.is_empty() {
            return writeln!(out, "no RDMA device");
        }
        self.devices.iter().try_for_each(|device| write!(out, "{device}"))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            DeviceKind::SoftRoce => "RoCE in software",
            DeviceKind::SoftIwarp => "iWARP in software",
            DeviceKind::Adapter => "adapter",
        };
        let yes = |promise| if promise { "yes" } else { "not promised" };
        let Self { limits, order, .. } = self;
        let writes = match (order.writes, self.data_in_order) {
            (true, _) => "yes",
            (false, DataInOrder::NotKnown) => "not known",
            (false, _) => "not promised",
        };
        writeln!(
            out,
            "{}: {kind}, vendor {:#x}, part {:#x}",
            self.name, self.vendor_id, self.vendor_part_id
        )?;
        writeln!(out, "  node {}, firmware '{}'", self.node_guid, self.firmware)?;
        if let Err(error) = self.choose(&Wanted::default()) {
            writeln!(out, "  not usable: {error}")?;
        }
        writeln!(
            out,
            "  order between writes: {}; within a write: {}; visible upon completion: {}",
            writes,
            yes(order.addresses),
            yes(order.visible_upon_completion)
        )?;
        writeln!(
            out,
            "  at most {} queue pairs, {} requests and {} ranges each, {} B inline, {} reads at once",
            limits.queue_pairs_max,
            limits.work_requests_max,
            limits.ranges_max,
            limits.inline_bytes_max,
            limits.reads_max
        )?;
        writeln!(
            out,
            "  at most {} completion entries on {} vectors, {} registrations of {} B",
            limits.completion_entries_max,
            self.completion_vectors,
            limits.memory_regions_max,
            limits.region_bytes_max
        )?;
        self.ports.iter().try_for_each(|port| write!(out, "{port}"))
    }
}

impl fmt::Display for Port {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "  port {}: {}, {}, ", self.number, self.state.name(), self.link_layer)?;
        writeln!(
            out,
            "LID {}, MTU {} of {} B, messages to {} B",
            self.lid, self.mtu_bytes, self.mtu_bytes_max, self.message_bytes_max
        )?;
        self.gids.iter().try_for_each(|gid| {
            write!(out, "    GID {:>3}  {:<10}  {}", gid.index, gid.kind, gid.address)?;
            let mut interfaces = self.interfaces.iter();
            match interfaces.find(|interface| interface.gids.contains(&gid.index)) {
                Some(interface) => writeln!(out, "  {}", interface.name),
                None => writeln!(out),
            }
        })?;
        let has_no_gid = |interface: &&Interface| interface.gids.is_empty();
        self.interfaces
            .iter()
            .filter(has_no_gid)
            .try_for_each(|interface| writeln!(out, "    network interface {}", interface.name))?;
        // Nearly every port has only the usual partition.
        let is_unusual = |partition: &&Partition| partition.key != PartitionKey::USUAL;
        self.partitions.iter().filter(is_unusual).try_for_each(|partition| {
            writeln!(out, "    PKey {:>2}  {}", partition.index, partition.key)
        })
    }
}

#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    /// Returns a software device like the lab's, including its flaw: GID 0 leads nowhere.
    pub(crate) fn rxe() -> Device {
        let gid = |index, address: &str| Gid {
            index,
            kind: GidKind::RoceV2,
            address: address.parse().expect("an address"),
        };
        Device {
            name: "rxe0".into(),
            kind: DeviceKind::SoftRoce,
            vendor_id: 0x00ff_ffff,
            vendor_part_id: 0,
            firmware: String::new(),
            node_guid: "5054:00ff:fe12:3456".into(),
            limits: DeviceLimits {
                queue_pairs_max: 1_048_560,
                work_requests_max: 1_048_576,
                ranges_max: 32,
                completion_entries_max: 32_767,
                memory_regions_max: 524_287,
                region_bytes_max: u64::MAX,
                reads_max: 128,
                inline_bytes_max: 512,
            },
            transport: Transport::InfiniBand,
            completion_vectors: 2,
            data_in_order: DataInOrder::NotKnown,
            order: DeviceKind::SoftRoce.order(DataInOrder::NotKnown),
            ports: vec![Port {
                number: 1,
                state: PortState::Active,
                link_layer: LinkLayer::Ethernet,
                lid: 0,
                mtu_bytes: 1024,
                mtu_bytes_max: 4096,
                message_bytes_max: 8_388_608,
                needs_global_route: false,
                gids: vec![gid(0, "fe80::5054:ff:fe12:3456"), gid(1, "::ffff:10.9.0.1")],
                interfaces: vec![Interface { name: "eth0".into(), gids: vec![0, 1] }],
                partitions: vec![Partition { index: 0, key: PartitionKey::USUAL }],
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_device_port_and_address() {
        let table = Devices { devices: vec![samples::rxe()] }.to_string();
        for wanted in [
            "rxe0",
            "software",
            "active",
            "Ethernet",
            "GID   1  RoCE v2",
            "::ffff:10.9.0.1",
            "512 B",
        ] {
            assert!(table.contains(wanted), "{wanted} is not in\n{table}");
        }
        assert_eq!(Devices::default().to_string(), "no RDMA device\n");
    }

    #[test]
    fn table_states_why_a_device_is_refused() {
        let mut iwarp = samples::rxe();
        iwarp.transport = Transport::Iwarp;
        let mut down = samples::rxe();
        down.ports[0].state = PortState::Down;
        let usable = samples::rxe();
        assert!(!usable.to_string().contains("not usable"));
        for (device, words) in [(iwarp, "iWARP"), (down, "no port is active")] {
            let table = device.to_string();
            let line = table.lines().find(|line| line.contains("not usable")).expect("a line");
            assert!(line.contains(words), "{line}");
        }
    }

    #[test]
    fn device_table_is_serialisable() {
        let json = serde_json::to_value(Devices { devices: vec![samples::rxe()] }).expect("data");
        assert_eq!(json["devices"][0]["ports"][0]["gids"][1]["address"], "::ffff:10.9.0.1");
        assert_eq!(json["devices"][0]["kind"], "soft-roce");
    }

    #[test]
    fn mtu_field_converts_to_bytes() {
        assert_eq!([1, 2, 3, 4, 5].map(mtu_bytes), [256, 512, 1024, 2048, 4096]);
        assert_eq!([0, 6, u32::MAX].map(mtu_bytes), [0; 3]);
    }
}
