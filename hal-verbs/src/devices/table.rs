//! The table that `tramontane verbs devices` prints.

use std::fmt;

use super::{
    DataInOrder, Device, DeviceKind, Devices, Interface, Partition, PartitionKey, Port, Wanted,
};

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
            DeviceKind::SoftRoce => "software RoCE",
            DeviceKind::SoftIwarp => "software iWARP",
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
mod tests {
    use super::super::samples;
    use super::super::{PortState, Transport};
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
    fn device_table_serializes_as_json() {
        let json = serde_json::to_value(Devices { devices: vec![samples::rxe()] }).expect("data");
        assert_eq!(json["devices"][0]["ports"][0]["gids"][1]["address"], "::ffff:10.9.0.1");
        assert_eq!(json["devices"][0]["kind"], "soft-roce");
    }
}
