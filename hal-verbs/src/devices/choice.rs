//! The choice of a device, port and address.

use std::net::{IpAddr, Ipv6Addr};

use super::{
    Device, Devices, Gid, GidKind, LinkLayer, Partition, PartitionKey, Port, PortState, Transport,
};

/// The caller's constraints; usually there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The device's name.
    pub device: Option<String>,
    /// The port's number.
    pub port: Option<u8>,
    /// The address.
    pub gid: GidChoice,
    /// The largest packet payload, in bytes; the port's payload is a further limit.
    pub mtu_bytes: Option<u32>,
    /// The partition, by its number. The port's table lists the port as a full or a limited member.
    pub partition: Option<PartitionKey>,
    /// The treatment of the packets by switches and routers.
    pub service: Service,
}

/// The treatment of packets by switches and routers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The traffic class. On RoCE v2, its upper six bits are the DSCP of each packet.
    pub traffic_class: u8,
    /// The service level, at most [`SERVICE_LEVEL_MAX`]. On InfiniBand, the subnet manager maps it
    /// to virtual lanes; on Ethernet it is the priority.
    pub level: u8,
    /// Whether packets carry a GID header (GRH) on InfiniBand too, which routers between subnets
    /// require. On Ethernet, packets always carry one.
    pub has_global_route: bool,
}

/// Service levels have four bits.
pub const SERVICE_LEVEL_MAX: u8 = 15;

/// The rule by which an address is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GidChoice {
    /// The address at which the members meet, if the port has it. Otherwise an address of the
    /// network interface that has the meeting address, if the interface is on the port. Otherwise
    /// RoCE v2 over IPv4, then over IPv6, then over a link-local address, then RoCE v1. On
    /// InfiniBand, the first entry.
    #[default]
    Auto,
    /// The entry with this index.
    Index(u8),
    /// The entry with this address; if there are two, the RoCE v2 entry.
    Address(IpAddr),
}

/// The device, port and address to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The device's index in the list.
    pub device: usize,
    /// The device's name.
    pub name: String,
    /// The port.
    pub port: u8,
    /// The port's link layer.
    pub link_layer: LinkLayer,
    /// The port's local identifier.
    pub lid: u16,
    /// The address.
    pub gid: Gid,
    /// The packet payload, in bytes.
    pub mtu_bytes: u32,
    /// The partition.
    pub partition: Partition,
    /// The treatment of the packets by switches and routers.
    pub service: Service,
}

/// The reason that no device, port or address can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// The machine has no RDMA device.
    #[error(
        "no RDMA device was found; load its driver, or create a software device: rdma link add \
         rxe0 type rxe netdev <interface>"
    )]
    NoDevice,
    /// The device's transport is neither InfiniBand nor RoCE.
    #[error(
        "{device} runs on {}, but the fabric needs InfiniBand or RoCE; use a different device, or \
         fabric \"tcp\"",
        transport.name()
    )]
    OtherTransport {
        /// The device.
        device: String,
        /// The device's transport.
        transport: Transport,
    },
    /// No device has this name.
    #[error("no RDMA device is called '{wanted}'; choose one of: {}", known.join(", "))]
    NoSuchDevice {
        /// The requested name.
        wanted: String,
        /// The names of the devices that exist.
        known: Vec<String>,
    },
    /// The device has no such port.
    #[error("{device} has no port {port}; choose one from 1 to {ports}")]
    NoSuchPort {
        /// The device.
        device: String,
        /// The requested port.
        port: u8,
        /// The number of ports.
        ports: usize,
    },
    /// The port is down; without a port number, all ports are down.
    #[error(
        "{device}: no port is active; check the cable, and the network interface of the port (ip \
         link)"
    )]
    NoActivePort {
        /// The device.
        device: String,
    },
    /// The port's table has no entry with this index.
    #[error(
        "{device} port {port} has no GID {index}; see \
         /sys/class/infiniband/{device}/ports/{port}/gids"
    )]
    NoSuchGid {
        /// The device.
        device: String,
        /// The port.
        port: u8,
        /// The requested index.
        index: u8,
    },
    /// No entry has this address.
    #[error(
        "{device} port {port} has no GID for {address}; see \
         /sys/class/infiniband/{device}/ports/{port}/gids"
    )]
    NoGidFor {
        /// The device.
        device: String,
        /// The port.
        port: u8,
        /// The requested address.
        address: IpAddr,
    },
    /// The port has no address at all.
    #[error("{device} port {port} has no GID; give its network interface an address (ip addr add)")]
    NoGid {
        /// The device.
        device: String,
        /// The port.
        port: u8,
    },
    /// An InfiniBand port that no subnet manager has configured.
    #[error("{device} port {port} has LID 0; start a subnet manager (opensm) on its network")]
    NoLid {
        /// The device.
        device: String,
        /// The port.
        port: u8,
    },
    /// The port is not in that partition.
    #[error(
        "{device} port {port} is not in partition {partition}; see its partition keys in \
         /sys/class/infiniband/{device}/ports/{port}/pkeys"
    )]
    NoSuchPartition {
        /// The device.
        device: String,
        /// The port.
        port: u8,
        /// The requested partition.
        partition: PartitionKey,
    },
    /// The service level is out of range.
    #[error("{level} is not a service level; give a level from 0 to {SERVICE_LEVEL_MAX}")]
    BadServiceLevel {
        /// The requested service level.
        level: u8,
    },
    /// The packet size is not one that InfiniBand or RoCE supports.
    #[error(
        "{bytes} B is not a valid packet size; give 256, 512, 1024, 2048 or 4096, but not more \
         than the port's"
    )]
    BadMtu {
        /// The requested size in bytes.
        bytes: u32,
    },
}

impl Devices {
    /// Chooses the first device with an active port and an address, within the caller's
    /// constraints.
    ///
    /// # Errors
    /// [`ChoiceError`].
    pub fn choose(&self, wanted: &Wanted) -> Result<Choice, ChoiceError> {
        if let Some(name) = &wanted.device {
            let known = || self.devices.iter().map(|device| device.name.clone()).collect();
            let index = self.devices.iter().position(|device| device.name == *name);
            let index = index.ok_or_else(|| match self.devices.len() {
                0 => ChoiceError::NoDevice,
                _ => ChoiceError::NoSuchDevice { wanted: name.clone(), known: known() },
            })?;
            let chosen = self.devices[index].choose(wanted)?;
            return Ok(Choice { device: index, ..chosen });
        }
        let mut first = ChoiceError::NoDevice;
        for (index, device) in self.devices.iter().enumerate() {
            match device.choose(wanted) {
                Ok(choice) => return Ok(Choice { device: index, ..choice }),
                Err(error) if first == ChoiceError::NoDevice => first = error,
                Err(_) => {}
            }
        }
        Err(first)
    }
}

impl Device {
    /// Chooses the device, port and address as if this device were the only one.
    ///
    /// # Errors
    /// [`ChoiceError`].
    pub fn choose(&self, wanted: &Wanted) -> Result<Choice, ChoiceError> {
        let name = self.name.clone();
        if !self.transport.is_carried() {
            return Err(ChoiceError::OtherTransport { device: name, transport: self.transport });
        }
        if wanted.service.level > SERVICE_LEVEL_MAX {
            return Err(ChoiceError::BadServiceLevel { level: wanted.service.level });
        }
        let port = choose_port(self, wanted)?;
        if port.link_layer == LinkLayer::InfiniBand && port.lid == 0 {
            return Err(ChoiceError::NoLid { device: name, port: port.number });
        }
        Ok(Choice {
            device: 0,
            gid: choose_gid(self, port, wanted.gid)?,
            mtu_bytes: choose_mtu(port, wanted)?,
            partition: choose_partition(self, port, wanted.partition)?,
            name,
            port: port.number,
            link_layer: port.link_layer,
            lid: port.lid,
            service: Service {
                has_global_route: wanted.service.has_global_route || port.needs_global_route,
                ..wanted.service
            },
        })
    }
}

fn choose_mtu(port: &Port, wanted: &Wanted) -> Result<u32, ChoiceError> {
    match wanted.mtu_bytes {
        None => Ok(port.mtu_bytes),
        Some(bytes)
            if matches!(bytes, 256 | 512 | 1024 | 2048 | 4096) && bytes <= port.mtu_bytes =>
        {
            Ok(bytes)
        }
        Some(bytes) => Err(ChoiceError::BadMtu { bytes }),
    }
}

/// Prefers a full membership, because a limited member does not reach other limited members. A port
/// whose table is unknown is in the usual partition.
fn choose_partition(
    device: &Device,
    port: &Port,
    wanted: Option<PartitionKey>,
) -> Result<Partition, ChoiceError> {
    let usual = Partition { index: 0, key: PartitionKey::USUAL };
    let of = |key| {
        let same = port.partitions.iter().filter(|entry| entry.key.is_same_partition(key));
        same.copied().max_by_key(|entry| entry.key.is_full_member())
    };
    match wanted {
        // A port outside the usual partition uses the first partition in its own table.
        None => Ok(of(PartitionKey::USUAL).or(port.partitions.first().copied()).unwrap_or(usual)),
        Some(partition) => of(partition).ok_or_else(|| ChoiceError::NoSuchPartition {
            device: device.name.clone(),
            port: port.number,
            partition,
        }),
    }
}

fn choose_port<'d>(device: &'d Device, wanted: &Wanted) -> Result<&'d Port, ChoiceError> {
    let name = || device.name.clone();
    let is_active = |port: &&Port| port.state == PortState::Active;
    if let Some(number) = wanted.port {
        let port = device.ports.iter().find(|port| port.number == number);
        let ports = device.ports.len();
        let port =
            port.ok_or_else(|| ChoiceError::NoSuchPort { device: name(), port: number, ports })?;
        return Some(port)
            .filter(is_active)
            .ok_or_else(|| ChoiceError::NoActivePort { device: name() });
    }
    let with_address = |port: &&Port| is_active(port) && !port.gids.is_empty();
    let port =
        device.ports.iter().find(with_address).or_else(|| device.ports.iter().find(is_active));
    port.ok_or_else(|| ChoiceError::NoActivePort { device: name() })
}

fn choose_gid(device: &Device, port: &Port, wanted: GidChoice) -> Result<Gid, ChoiceError> {
    let (device, number) = (device.name.clone(), port.number);
    let best = best_gid(port, |_| true);
    match wanted {
        GidChoice::Auto => best.ok_or(ChoiceError::NoGid { device, port: number }),
        GidChoice::Index(index) => port
            .gids
            .iter()
            .copied()
            .find(|gid| gid.index == index)
            .ok_or(ChoiceError::NoSuchGid { device, port: number, index }),
        GidChoice::Address(address) => {
            let mapped = match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            let same = port.gids.iter().copied().filter(|gid| gid.address == mapped);
            same.min_by_key(|gid| (rank(gid), gid.index)).ok_or(ChoiceError::NoGidFor {
                device,
                port: number,
                address,
            })
        }
    }
}

/// Returns the best admitted entry of a port's address table.
pub(super) fn best_gid(port: &Port, admits: impl Fn(&Gid) -> bool) -> Option<Gid> {
    let admitted = port.gids.iter().copied().filter(admits);
    admitted.min_by_key(|gid| (rank(gid), gid.index))
}

/// Returns an entry's rank; lower is better. Link-local addresses come late: every table has a
/// link-local address, which often leads nowhere.
const fn rank(gid: &Gid) -> u8 {
    match gid.kind {
        GidKind::InfiniBand => 0,
        GidKind::RoceV2 if gid.address.to_ipv4_mapped().is_some() => 0,
        GidKind::RoceV2 if !is_link_local(&gid.address) => 1,
        GidKind::RoceV2 => 2,
        GidKind::RoceV1 => 3,
    }
}

const fn is_link_local(address: &Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

#[cfg(test)]
mod tests {
    use super::super::samples::rxe;
    use super::*;

    fn one(device: Device) -> Devices {
        Devices { devices: vec![device] }
    }

    fn with(change: impl FnOnce(&mut Device)) -> Result<Choice, ChoiceError> {
        let mut device = rxe();
        change(&mut device);
        one(device).choose(&Wanted::default())
    }

    #[test]
    fn routable_roce_v2_address_is_chosen() {
        let choice = one(rxe()).choose(&Wanted::default()).expect("a choice");
        assert_eq!((choice.port, choice.gid.index, choice.mtu_bytes), (1, 1, 1024));
        let gid = GidChoice::Address("10.9.0.1".parse().expect("an address"));
        let wanted = Wanted { gid, mtu_bytes: Some(512), ..Wanted::default() };
        let choice = one(rxe()).choose(&wanted).expect("a choice");
        assert_eq!((choice.gid.index, choice.mtu_bytes), (1, 512));
        let wanted = Wanted { gid: GidChoice::Index(0), ..Wanted::default() };
        assert_eq!(
            one(rxe()).choose(&wanted).expect("a choice").gid.index,
            0,
            "an explicit index is used"
        );
    }

    #[test]
    fn error_names_missing_device_port_or_address() {
        let ask = |wanted: Wanted| one(rxe()).choose(&wanted).expect_err("nothing to choose");
        let base = Wanted::default;
        assert_eq!(Devices::default().choose(&base()), Err(ChoiceError::NoDevice));
        let device = Some("mlx5_0".to_owned());
        assert!(matches!(ask(Wanted { device, ..base() }), ChoiceError::NoSuchDevice { .. }));
        assert!(matches!(
            ask(Wanted { port: Some(2), ..base() }),
            ChoiceError::NoSuchPort { ports: 1, .. }
        ));
        let index = ask(Wanted { gid: GidChoice::Index(9), ..base() });
        assert_eq!(index, ChoiceError::NoSuchGid { device: "rxe0".into(), port: 1, index: 9 });
        let address = GidChoice::Address("10.9.0.2".parse().expect("an address"));
        assert!(matches!(ask(Wanted { gid: address, ..base() }), ChoiceError::NoGidFor { .. }));
        assert_eq!(
            ask(Wanted { mtu_bytes: Some(4096), ..base() }),
            ChoiceError::BadMtu { bytes: 4096 }
        );
        assert_eq!(
            ask(Wanted { mtu_bytes: Some(1000), ..base() }),
            ChoiceError::BadMtu { bytes: 1000 }
        );
    }

    #[test]
    fn inactive_port_is_not_chosen() {
        let down = with(|device| device.ports[0].state = PortState::Down);
        assert!(matches!(down, Err(ChoiceError::NoActivePort { .. })));
        let bare = with(|device| device.ports[0].gids.clear());
        assert!(matches!(bare, Err(ChoiceError::NoGid { .. })));
        let unmanaged = with(|device| device.ports[0].link_layer = LinkLayer::InfiniBand);
        assert!(matches!(unmanaged, Err(ChoiceError::NoLid { .. })));
    }

    #[test]
    fn error_names_unsupported_transport() {
        for transport in [
            Transport::Iwarp,
            Transport::OmniPath,
            Transport::Efa,
            Transport::UsNic,
            Transport::Unknown,
        ] {
            let error = with(|device| device.transport = transport).expect_err("it is refused");
            assert!(error.to_string().contains(transport.name()), "{error}");
            // A second device that works is chosen instead.
            let mut other = rxe();
            other.name = "other".into();
            other.transport = transport;
            let devices = Devices { devices: vec![other, rxe()] };
            let choice = devices.choose(&Wanted::default()).expect("a choice");
            assert_eq!((choice.name.as_str(), choice.device), ("rxe0", 1));
        }
    }

    #[test]
    fn partition_choice_prefers_full_membership() {
        let entry = |index, key| Partition { index, key: PartitionKey(key) };
        let mut device = rxe();
        device.ports[0].partitions = vec![entry(0, 0x7fff), entry(1, 0x0001), entry(3, 0x8001)];
        let ask = |key: Option<u16>| {
            let wanted = Wanted { partition: key.map(PartitionKey), ..Wanted::default() };
            device.choose(&wanted).map(|choice| choice.partition)
        };
        assert_eq!(ask(None), Ok(entry(0, 0x7fff)));
        assert_eq!(ask(Some(0x0001)), Ok(entry(3, 0x8001)));
        assert_eq!(ask(Some(0x8001)), Ok(entry(3, 0x8001)));
        assert!(matches!(ask(Some(0x8002)), Err(ChoiceError::NoSuchPartition { port: 1, .. })));
        device.ports[0].partitions.clear();
        let choice = device.choose(&Wanted::default()).expect("a choice");
        assert_eq!(choice.partition, entry(0, 0xffff));
    }

    #[test]
    fn service_level_is_at_most_fifteen() {
        let ask = |level| {
            let service = Service { level, ..Service::default() };
            rxe().choose(&Wanted { service, ..Wanted::default() })
        };
        assert_eq!(ask(15).map(|choice| choice.service.level), Ok(15));
        assert_eq!(ask(16), Err(ChoiceError::BadServiceLevel { level: 16 }));
    }

    #[test]
    fn working_device_is_preferred() {
        let mut dead = rxe();
        dead.name = "dead".into();
        dead.ports[0].state = PortState::Down;
        let devices = Devices { devices: vec![dead, rxe()] };
        assert_eq!(devices.choose(&Wanted::default()).expect("a choice").name, "rxe0");
        let wanted = Wanted { device: Some("dead".into()), ..Wanted::default() };
        assert!(matches!(devices.choose(&wanted), Err(ChoiceError::NoActivePort { .. })));
    }
}
