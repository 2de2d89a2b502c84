//! RDMA options of the commands, which choose a device, and counters.
//!
//! The fabric itself is `tramontane-verbs`, which is part of every program. libibverbs is loaded
//! when RDMA is first requested. On a host without it, the error names the package to install.

mod values;
mod views;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::values::{Gid, Pkey, RdmaOrder};
pub use self::views::NoFabric;
pub(crate) use self::views::open_site;
pub use tramontane_verbs::{Counters as PostCounts, Figures};

/// Without this error, members that have a key would continue unencrypted without anyone's consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "RDMA is never encrypted, because the key protects only TCP; on a network that you trust, \
     allow unencrypted traffic (allow_clear = true in the group file); on any other network, use \
     fabric \"tcp\""
)]
pub struct ClearNotAllowed;

/// Checks whether members may use RDMA. If they have a key, they must explicitly allow unencrypted
/// traffic.
///
/// # Errors
/// [`ClearNotAllowed`].
pub const fn check_clear(is_keyed: bool, allow_clear: bool) -> Result<(), ClearNotAllowed> {
    if is_keyed && !allow_clear { Err(ClearNotAllowed) } else { Ok(()) }
}

/// The RDMA device and how it is used. Options that are not given are chosen by querying the
/// device. Each member has its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceOptions {
    /// The RDMA device [default: the first usable one; see 'tramontane verbs devices']
    pub device: Option<String>,
    /// The port of the device [default: the first active port]
    pub port: Option<u8>,
    /// The GID, by index or as an address [default: the address at which the members meet, else one
    /// of the network interface that has it, else RoCE v2 over IPv4 first]
    pub gid: Option<Gid>,
    /// The largest packet payload, in bytes [default: that of the port]
    pub mtu: Option<u32>,
    /// How long a peer may leave writes unacknowledged before it counts as lost [default: 1 s, and
    /// the failure timeout in a group]. A file has it in milliseconds.
    #[serde(rename = "loss_timeout_ms", with = "values::milliseconds")]
    pub loss_timeout: Option<Duration>,
    /// The least timeout exponent that the NIC's firmware accepts, 0 to 31: the time is 4.096 us
    /// times two to its power [default: 16 for NICs, about 268 ms]
    pub timer_floor: Option<u8>,
    /// The traffic class of all packets; on RoCE v2 its upper six bits are the DSCP [default: 0]
    pub traffic_class: Option<u8>,
    /// The service level of all packets, 0 to 15: the priority on Ethernet [default: 0]
    pub service_level: Option<u8>,
    /// The partition of an InfiniBand network [default: 0xffff, or else the port's first]
    pub pkey: Option<Pkey>,
    /// Whether packets carry the GID on InfiniBand too, as routers between subnets need
    pub grh: bool,
    /// Whether rows and blocks are allocated in huge pages, as far as the system has them
    pub huge_pages: bool,
    /// The completion vector: which processor a sleeping member is woken on [default: spread over
    /// those of the device, by member and view]
    pub completion_vector: Option<u32>,
    /// The order that the network keeps between writes: auto, none, writes or visible; the same at
    /// all members [default: auto, as the device reports]
    pub rdma_order: Option<RdmaOrder>,
}

impl DeviceOptions {
    /// Returns these options, completed with those of `other` for options that are not set. The
    /// command line takes precedence over a file.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            device: self.device.or_else(|| other.device.clone()),
            port: self.port.or(other.port),
            gid: self.gid.or(other.gid),
            mtu: self.mtu.or(other.mtu),
            loss_timeout: self.loss_timeout.or(other.loss_timeout),
            timer_floor: self.timer_floor.or(other.timer_floor),
            traffic_class: self.traffic_class.or(other.traffic_class),
            service_level: self.service_level.or(other.service_level),
            pkey: self.pkey.or(other.pkey),
            grh: self.grh || other.grh,
            huge_pages: self.huge_pages || other.huge_pages,
            completion_vector: self.completion_vector.or(other.completion_vector),
            rdma_order: self.rdma_order.or(other.rdma_order),
        }
    }

    /// Returns the choice of device, as the fabric expects it.
    #[must_use]
    pub fn wanted(&self) -> tramontane_verbs::devices::Wanted {
        use tramontane_verbs::devices::{GidChoice, PartitionKey, Service, Wanted};
        Wanted {
            device: self.device.clone(),
            port: self.port,
            gid: match self.gid {
                None => GidChoice::Auto,
                Some(Gid::Index(index)) => GidChoice::Index(index),
                Some(Gid::Address(address)) => GidChoice::Address(address),
            },
            mtu_bytes: self.mtu,
            partition: self.pkey.map(|key| PartitionKey(key.0)),
            service: Service {
                traffic_class: self.traffic_class.unwrap_or(0),
                level: self.service_level.unwrap_or(0),
                has_global_route: self.grh,
            },
        }
    }

    /// Returns the limits that the fabric observes.
    #[must_use]
    pub fn limits(&self) -> tramontane_verbs::Limits {
        let usual = tramontane_verbs::Limits::default();
        let order = self.rdma_order.unwrap_or_default();
        tramontane_verbs::Limits {
            loss_time: self.loss_timeout.unwrap_or(usual.loss_time),
            timeout_exponent_floor: self.timer_floor,
            huge_pages: self.huge_pages,
            completion_vector: self.completion_vector,
            write_order: match order {
                RdmaOrder::Auto => None,
                RdmaOrder::None => Some(false),
                RdmaOrder::Writes | RdmaOrder::Visible => Some(true),
            },
            completion_visible: match order {
                RdmaOrder::Visible => Some(true),
                RdmaOrder::Auto | RdmaOrder::None | RdmaOrder::Writes => usual.completion_visible,
            },
            ..usual
        }
    }
}

/// Discovers the devices of this machine, or opens only the device named by the options.
///
/// # Errors
/// Fails if libibverbs is not installed, or the kernel does not list the devices.
pub fn discover(
    options: &DeviceOptions,
) -> Result<tramontane_verbs::devices::Devices, tramontane_verbs::JoinError> {
    tramontane_verbs::devices::Devices::discover_only(options.device.as_deref())
        .map_err(tramontane_verbs::JoinError::from_discovery)
}

/// Chooses one of the discovered devices.
///
/// # Errors
/// Fails if no device can be chosen, or the kernel does not list the devices.
pub fn choose(
    device: &DeviceOptions,
) -> Result<tramontane_verbs::devices::Choice, tramontane_verbs::JoinError> {
    Ok(discover(device)?.choose(&device.wanted())?)
}

/// Logs the settings that were chosen or rounded (HAL-3, HAL-4).
pub(crate) fn tell(report: &tramontane_verbs::Report) {
    let tramontane_verbs::Report { choice, order, write_order, loss_times, .. } = report;
    tracing::info!(
        device = choice.name,
        port = choice.port,
        gid = choice.gid.index,
        address = %choice.gid.address,
        mtu_bytes = choice.mtu_bytes,
        ?order,
        ?write_order,
        loss_time_least = ?loss_times.least(),
        loss_time_longest = ?loss_times.longest(),
        retries = loss_times.retries,
        depth = report.depth,
        signal_every = report.signal_every,
        inline_bytes_max = report.inline_bytes_max,
        send_ring_bytes = report.send_ring_bytes,
        "writes go over RDMA"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> DeviceOptions {
        DeviceOptions {
            device: Some("mlx5_1".into()),
            port: Some(2),
            gid: Some(Gid::Index(3)),
            mtu: Some(1024),
            loss_timeout: Some(Duration::from_millis(1500)),
            timer_floor: Some(12),
            traffic_class: Some(106),
            service_level: Some(3),
            pkey: Some(Pkey(0x8001)),
            grh: true,
            huge_pages: true,
            completion_vector: Some(5),
            rdma_order: Some(RdmaOrder::None),
        }
    }

    #[test]
    fn command_line_options_override_group_file() {
        let given = DeviceOptions { mtu: Some(512), ..DeviceOptions::default() };
        let together = given.or(&all());
        assert_eq!(together, DeviceOptions { mtu: Some(512), ..all() });
        assert_eq!(all().or(&DeviceOptions::default()), all());
        assert_eq!(DeviceOptions::default().or(&all()), all());
    }

    #[test]
    fn group_file_accepts_every_rdma_option() {
        let text = r#"
            device = "mlx5_1"
            port = 2
            gid = 3
            mtu = 1024
            loss_timeout_ms = 1500
            timer_floor = 12
            traffic_class = 106
            service_level = 3
            pkey = "0x8001"
            grh = true
            huge_pages = true
            completion_vector = 5
            rdma_order = "none"
        "#;
        let read = |text: &str| toml::from_str::<DeviceOptions>(text);
        assert_eq!(read(text).expect("options"), all());
        let address = read("gid = \"10.9.0.1\"").expect("an address").gid;
        assert_eq!(address, "10.9.0.1".parse().ok());
        for bad in ["gid = \"ten\"", "pkey = 7", "pkey = \"green\"", "lid = 7"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_rdma_option_reaches_the_fabric() {
        let (wanted, limits) = (all().wanted(), all().limits());
        assert_eq!((wanted.mtu_bytes, wanted.port), (Some(1024), Some(2)));
        assert_eq!(wanted.partition.map(|key| key.0), Some(0x8001));
        let service = wanted.service;
        assert_eq!((service.traffic_class, service.level), (106, 3));
        assert!(service.has_global_route && limits.huge_pages);
        assert_eq!(limits.loss_time, Duration::from_millis(1500));
        assert_eq!((limits.timeout_exponent_floor, limits.completion_vector), (Some(12), Some(5)));
        assert_eq!((limits.write_order, limits.completion_visible), (Some(false), None));
        let visible = DeviceOptions { rdma_order: Some(RdmaOrder::Visible), ..all() }.limits();
        assert_eq!((visible.write_order, visible.completion_visible), (Some(true), Some(true)));
    }
}
