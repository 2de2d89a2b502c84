//! Discovery of the machine's devices.

use std::io;

use super::{
    ChoiceError, DataInOrder, Device, DeviceKind, DeviceLimits, Devices, Gid, LinkLayer, Partition,
    PartitionKey, Port, PortState, Transport, Wanted, ask::data_in_order, mtu_bytes,
};
use crate::adapter::{
    self, CompletionQueue, Context, PortAttributes, ProtectionDomain, QueuePair, QueuePairLimits,
    device_names,
};

/// `IBV_LINK_LAYER_ETHERNET` in `<infiniband/verbs.h>`.
const ETHERNET: u8 = 2;

/// Inline sizes to try, from the largest. Sending a larger write inline would not be cheaper than
/// by reference.
const INLINE_BYTES: [u32; 7] = [1024, 512, 256, 128, 96, 64, 28];

impl Devices {
    /// Asks the kernel and every device. A device that does not answer is omitted and logged.
    ///
    /// # Errors
    /// Fails if libibverbs cannot be used (the error then contains
    /// [`NoLibrary`](crate::NoLibrary)), if the list of devices cannot be read, if none of the
    /// devices answers (with the first device's error), or if the kernel has devices for which no
    /// libibverbs driver is installed.
    pub fn discover() -> io::Result<Self> {
        Self::discover_only(None)
    }

    /// Discovers only the named device, if there is a name. No other device is opened.
    ///
    /// # Errors
    /// Fails like [`Devices::discover`]. If no device has the name, the error contains
    /// [`ChoiceError`].
    pub fn discover_only(wanted: Option<&str>) -> io::Result<Self> {
        let names = match device_names() {
            Ok(names) => only(names, wanted).map_err(io::Error::other)?,
            // This kernel has no RDMA at all.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOSYS.raw_os_error()) => {
                return Ok(Self::default());
            }
            Err(error) => return Err(error),
        };
        let mut devices = Vec::new();
        let mut first = None;
        for name in names {
            match adapter::open(&name).and_then(|context| describe(&context, &name)) {
                Ok(device) => devices.push(device),
                Err(error) => {
                    let error = why_not(&name, error);
                    tracing::warn!(device = %name, %error, "a device does not answer");
                    first.get_or_insert((name, error));
                }
            }
        }
        judge(devices, first, &known_to_kernel())
    }

    /// Returns the devices from which a member may choose: those of the machine, or a fake device
    /// of this process with the wanted name.
    pub(crate) fn within_reach(wanted: Option<&str>) -> io::Result<Self> {
        match wanted.filter(|name| adapter::is_fake(name)) {
            None => Self::discover_only(wanted),
            Some(name) => {
                let device = describe(&adapter::open(name)?, name)?;
                Ok(Self { devices: vec![device] })
            }
        }
    }
}

/// Returns the reason that a device cannot be opened. libibverbs leaves the `errno` of its last
/// attempt, so it reports a node in `/dev` that this user may not open as a missing file. Opening
/// the node itself gives the true reason.
fn why_not(name: &str, error: io::Error) -> io::Error {
    let Ok(entries) = std::fs::read_dir("/sys/class/infiniband_verbs") else { return error };
    let is_of = |entry: &std::fs::DirEntry| {
        std::fs::read_to_string(entry.path().join("ibdev")).is_ok_and(|text| text.trim() == name)
    };
    let Some(entry) = entries.flatten().find(is_of) else { return error };
    let node = std::path::Path::new("/dev/infiniband").join(entry.file_name());
    match std::fs::OpenOptions::new().read(true).write(true).open(&node) {
        Ok(_) => error,
        Err(shut) => io::Error::new(shut.kind(), format!("{}: {shut}", node.display())),
    }
}

/// Returns the name of the wanted device, or all names if none is wanted.
fn only(names: Vec<String>, wanted: Option<&str>) -> Result<Vec<String>, ChoiceError> {
    let Some(wanted) = wanted.filter(|_| !names.is_empty()) else { return Ok(names) };
    if names.iter().any(|name| name == wanted) {
        return Ok(vec![wanted.to_owned()]);
    }
    Err(ChoiceError::NoSuchDevice { wanted: wanted.to_owned(), known: names })
}

/// Distinguishes "found nothing" from "there is nothing".
fn judge(
    devices: Vec<Device>,
    silent: Option<(String, io::Error)>,
    kernel_has: &[String],
) -> io::Result<Devices> {
    match (devices.is_empty(), silent) {
        (true, Some((name, error))) => {
            Err(io::Error::new(error.kind(), format!("{name}: {error}")))
        }
        (true, None) if !kernel_has.is_empty() => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "there is no user-space driver for {}; install ibverbs-providers",
                kernel_has.join(", ")
            ),
        )),
        _ => Ok(Devices { devices }),
    }
}

/// Returns the names of the kernel's devices, whether libibverbs can use them or not.
fn known_to_kernel() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/sys/class/infiniband") else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn describe(context: &Context, name: &str) -> io::Result<Device> {
    let attributes = context.attributes()?;
    let kind = DeviceKind::from_vendor(attributes.vendor_id);
    let guid = attributes.node_guid;
    let features = context.features();
    let mut device = Device {
        name: name.to_owned(),
        kind,
        vendor_id: attributes.vendor_id,
        vendor_part_id: attributes.vendor_part_id,
        firmware: attributes.firmware,
        node_guid: format!(
            "{:04x}:{:04x}:{:04x}:{:04x}",
            guid >> 48,
            guid >> 32 & 0xffff,
            guid >> 16 & 0xffff,
            guid & 0xffff
        ),
        transport: Transport::from_raw(
            features.transport,
            attributes.vendor_id,
            attributes.vendor_part_id,
        ),
        completion_vectors: features.completion_vectors.max(1),
        limits: DeviceLimits {
            queue_pairs_max: attributes.queue_pairs_max,
            work_requests_max: attributes.work_requests_max,
            ranges_max: attributes.scatter_max,
            completion_entries_max: attributes.completion_entries_max,
            memory_regions_max: attributes.memory_regions_max,
            region_bytes_max: attributes.region_bytes_max,
            reads_max: attributes.reads_max,
            inline_bytes_max: inline_bytes_max(context),
        },
        data_in_order: DataInOrder::NotKnown,
        order: kind.order(DataInOrder::NotKnown),
        ports: describe_ports(context, name, attributes.ports)?,
    };
    if kind == DeviceKind::Adapter {
        ask_for_order(context, &mut device);
    }
    Ok(device)
}

/// Queries the order on the port that is chosen by default.
fn ask_for_order(context: &Context, device: &mut Device) {
    let alone = Devices { devices: vec![device.clone()] };
    let Ok(choice) = alone.choose(&Wanted::default()) else { return };
    device.data_in_order = data_in_order(context, &choice);
    device.order = device.kind.order(device.data_in_order);
}

/// Describes the first `count` ports of the device called `name`.
pub(crate) fn describe_ports(context: &Context, name: &str, count: u8) -> io::Result<Vec<Port>> {
    let ports = (1..=count).map(|number| {
        let port = context.port(number)?;
        Ok(describe_port(context, name, number, &port))
    });
    ports.collect()
}

fn describe_port(context: &Context, device: &str, number: u8, port: &PortAttributes) -> Port {
    let is_ethernet = port.link_layer == ETHERNET;
    // Connections name a table entry by one byte.
    let gids = (0..u8::MAX).take(port.gids).filter_map(|index| {
        let address = context.gid(number, index).ok()?;
        let kind = context.gid_kind(device, number, index, is_ethernet);
        (!address.is_unspecified()).then_some(Gid { index, kind, address })
    });
    // A port without a table is in the usual partition, so a device that does not answer is not
    // excluded.
    let keys = context.partition_keys(number).unwrap_or_default();
    let partitions = (0..).zip(keys).map(|(index, key)| (index, PartitionKey(key)));
    let partitions = partitions.filter(|(_, key)| key.is_valid());
    let gids: Vec<Gid> = gids.collect();
    Port {
        number,
        state: PortState::from_raw(port.state),
        link_layer: if is_ethernet { LinkLayer::Ethernet } else { LinkLayer::InfiniBand },
        lid: port.lid,
        needs_global_route: port.needs_global_route,
        mtu_bytes: mtu_bytes(port.mtu_active),
        mtu_bytes_max: mtu_bytes(port.mtu_max),
        message_bytes_max: port.message_bytes_max,
        interfaces: context.interfaces(device, number, &gids),
        gids,
        partitions: partitions.map(|(index, key)| Partition { index, key }).collect(),
    }
}

/// Creates queue pairs with decreasing inline sizes until one size is granted. Returns zero if none
/// is.
pub(crate) fn inline_bytes_max(context: &Context) -> u32 {
    let domain = ProtectionDomain::new(context);
    let completions = CompletionQueue::new(context, 4);
    let (Ok(domain), Ok(completions)) = (domain, completions) else { return 0 };
    let grants = |inline_bytes_max| {
        let limits = QueuePairLimits { sends_max: 4, receives_max: 1, inline_bytes_max };
        QueuePair::new(&domain, &completions, limits).ok().map(|pair| pair.inline_bytes_max())
    };
    INLINE_BYTES.into_iter().find_map(grants).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::samples::rxe;
    use super::*;

    #[test]
    fn only_the_requested_device_is_opened() {
        let names = || vec!["mlx5_0".to_owned(), "mlx5_1".to_owned()];
        assert_eq!(only(names(), Some("mlx5_1")), Ok(vec!["mlx5_1".to_owned()]));
        assert_eq!(only(names(), None), Ok(names()));
        assert_eq!(only(Vec::new(), Some("mlx5_1")), Ok(Vec::new()), "there is no device at all");
        let error = only(names(), Some("mlx5_7")).expect_err("no such device").to_string();
        assert!(error.contains("mlx5_7") && error.contains("mlx5_0, mlx5_1"), "{error}");
    }

    #[test]
    fn unusable_devices_are_distinguished_from_no_devices() {
        let denied = || Some(("rxe0".to_owned(), io::Error::from_raw_os_error(13)));
        let error = judge(Vec::new(), denied(), &[]).expect_err("none answers");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("rxe0"), "{error}");
        let error = judge(Vec::new(), None, &["rxe0".to_owned()]).expect_err("no driver");
        assert!(error.to_string().contains("ibverbs-providers"), "{error}");
        assert_eq!(judge(vec![rxe()], denied(), &[]).expect("one answers").devices.len(), 1);
        assert_eq!(judge(Vec::new(), None, &[]).expect("no RDMA here"), Devices::default());
    }
}
