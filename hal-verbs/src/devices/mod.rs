//! RDMA devices as data: the machine's devices, and the choice of a port, address and packet size
//! (HAL-3).
//!
//! [`Devices`] is plain data that can be printed as a table or serialised. [`Devices::discover`]
//! fills it from the machine.

mod again;
pub(crate) mod ask;
mod choice;
mod device;
pub(crate) mod discover;
mod interface;
mod order;
mod partition;
mod table;
mod transport;

pub(crate) use again::choose_again;
pub use choice::{Choice, ChoiceError, GidChoice, SERVICE_LEVEL_MAX, Service, Wanted};
pub use device::{
    Device, DeviceLimits, Devices, Gid, GidKind, LinkLayer, Port, PortState, mtu_bytes,
};
pub use interface::Interface;
pub(crate) use interface::on_port;
pub use order::{DataInOrder, DeviceKind, Order};
pub use partition::{Partition, PartitionKey};
pub use transport::Transport;

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
