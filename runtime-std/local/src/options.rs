//! Options shared by several programs: fabrics, RDMA devices, algorithms, windows, times.
//!
//! The library that programs link has no command line, so the types that `clap` parses into are
//! here.

use std::time::Duration;

use crate::exit::Failure;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tramontane_core::layout::{MESSAGE_MAX, WINDOW_MAX};
use tramontane_core::rdmc::Algorithm;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::WINDOW_DEFAULT;
use tramontane_runtime::rdma::{DeviceOptions, Gid, Pkey, RdmaOrder};

/// Returns the command-line name of a value.
#[must_use]
pub fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns a parser for the name of a fabric.
#[must_use]
pub fn carrier() -> impl TypedValueParser<Value = Carrier> {
    let names = PossibleValuesParser::new([
        PossibleValue::new("shm").alias("shared-memory").help("Shared memory, on this machine"),
        PossibleValue::new("tcp").help("TCP, on this machine or between hosts"),
        PossibleValue::new("verbs").help("RDMA, on this machine or between hosts"),
    ]);
    names.map(|name| name.parse().unwrap_or_default())
}

/// The algorithms, by their names on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlgorithmName {
    /// The root sends the whole message to each member in turn
    Sequential,
    /// The root sends the first block to each member in turn, then the second block, and so on
    Interleaved,
    /// Each member passes each block on to the next member
    Chain,
    /// A binomial tree of whole messages
    Tree,
    /// A binomial pipeline of blocks
    Pipeline,
    /// A pipeline among racks, and a pipeline within each rack
    Hybrid,
}

impl AlgorithmName {
    /// Returns the algorithm for members that are not in racks, or `None` if it needs racks.
    #[must_use]
    pub const fn of_no_racks(self) -> Option<Algorithm> {
        match self {
            Self::Sequential => Some(Algorithm::Sequential),
            Self::Interleaved => Some(Algorithm::Interleaved),
            Self::Chain => Some(Algorithm::Chain),
            Self::Tree => Some(Algorithm::Tree),
            Self::Pipeline => Some(Algorithm::Pipeline),
            Self::Hybrid => None,
        }
    }
}

/// Options that select an RDMA device and its settings.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceArguments {
    /// RDMA device [default: the first usable one; see 'tramontane verbs devices']
    #[arg(long, value_name = "NAME", help_heading = "RDMA")]
    pub device: Option<String>,
    /// Port of the device [default: the first active port]
    #[arg(long, value_name = "NUMBER", help_heading = "RDMA")]
    pub port: Option<u8>,
    /// Source GID, by index or as an address [default: the address at which the members meet, else
    /// one of the network interface with that address, else preferably RoCE v2 over IPv4]
    #[arg(long, value_name = "GID", help_heading = "RDMA")]
    pub gid: Option<Gid>,
    /// Maximum packet payload, in bytes [default: that of the port]
    #[arg(long, value_name = "BYTES", help_heading = "RDMA")]
    pub mtu: Option<u32>,
    /// Time that a peer may leave writes unacknowledged before it counts as lost, in seconds
    /// [default: 1]
    #[arg(long, value_name = "SECONDS", help_heading = "RDMA", value_parser = loss_timeout)]
    pub loss_timeout: Option<Duration>,
    /// Smallest timeout exponent that the device's firmware uses, if you know it: shorter timeouts
    /// are raised to 4.096 us times two to this power [default: 16 for hardware devices, 268 ms]
    #[arg(long, value_name = "EXPONENT", help_heading = "RDMA",
          value_parser = clap::value_parser!(u8).range(0..=31))]
    pub timer_floor: Option<u8>,
    /// Traffic class of all packets; on RoCE v2, its upper six bits are the DSCP [default: 0]
    #[arg(long, value_name = "NUMBER", help_heading = "RDMA")]
    pub traffic_class: Option<u8>,
    /// Service level of all packets: the priority on Ethernet, the virtual lane on InfiniBand
    /// [default: 0]
    #[arg(long, value_name = "NUMBER", help_heading = "RDMA",
          value_parser = clap::value_parser!(u8).range(0..=15))]
    pub service_level: Option<u8>,
    /// Partition key of an InfiniBand network, in hexadecimal, such as 0x8001 [default: 0xffff, or
    /// else the first of the port]
    #[arg(long, value_name = "KEY", help_heading = "RDMA")]
    pub pkey: Option<Pkey>,
    /// Include the GID in packets on InfiniBand too, as routers between subnets require; if either
    /// of two members sets this option, both use it
    #[arg(long, help_heading = "RDMA")]
    pub grh: bool,
    /// Use huge pages for rows and blocks, or normal pages if the system has none (sysctl
    /// vm.nr_hugepages)
    #[arg(long, help_heading = "RDMA")]
    pub huge_pages: bool,
    /// Completion vector, which determines the processor that wakes a sleeping member [default:
    /// spread over the device's vectors by member and view]
    #[arg(long, value_name = "NUMBER", help_heading = "RDMA")]
    pub completion_vector: Option<u32>,
    /// Write order that the network keeps: 'auto' as the device reports, 'none' if switches or
    /// devices reorder packets, 'writes' if they are known not to, 'visible' if a completed write
    /// is also visible at its peer, which saves shards messages; must be the same for all members
    /// [default: auto]
    #[arg(long, value_name = "ORDER", help_heading = "RDMA")]
    pub rdma_order: Option<RdmaOrder>,
}

impl DeviceArguments {
    /// Returns the options in the library's form.
    #[must_use]
    pub fn options(&self) -> DeviceOptions {
        DeviceOptions {
            device: self.device.clone(),
            port: self.port,
            gid: self.gid,
            mtu: self.mtu,
            loss_timeout: self.loss_timeout,
            timer_floor: self.timer_floor,
            traffic_class: self.traffic_class,
            service_level: self.service_level,
            pkey: self.pkey,
            grh: self.grh,
            huge_pages: self.huge_pages,
            completion_vector: self.completion_vector,
            rdma_order: self.rdma_order,
        }
    }

    /// Returns the name of the first option given. None of these options applies to another fabric.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        given(&self.options())
    }
}

/// Returns the command-line name of the first option given.
#[must_use]
pub fn given(options: &DeviceOptions) -> Option<&'static str> {
    let DeviceOptions {
        device,
        port,
        gid,
        mtu,
        loss_timeout,
        timer_floor,
        traffic_class,
        service_level,
        pkey,
        grh,
        huge_pages,
        completion_vector,
        rdma_order,
    } = options;
    let all = [
        ("--device", device.is_some()),
        ("--port", port.is_some()),
        ("--gid", gid.is_some()),
        ("--mtu", mtu.is_some()),
        ("--loss-timeout", loss_timeout.is_some()),
        ("--timer-floor", timer_floor.is_some()),
        ("--traffic-class", traffic_class.is_some()),
        ("--service-level", service_level.is_some()),
        ("--pkey", pkey.is_some()),
        ("--grh", *grh),
        ("--huge-pages", *huge_pages),
        ("--completion-vector", completion_vector.is_some()),
        ("--rdma-order", rdma_order.is_some()),
    ];
    all.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

/// Maximum loss time, in seconds. Devices can count up to about half a day.
const LOSS_SECONDS_MAX: f64 = 3_600.0;

fn loss_timeout(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.001..=LOSS_SECONDS_MAX).contains(&seconds) {
        return Err("not between a millisecond and an hour".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// The window.
#[derive(Args, Clone, Copy, Debug)]
pub struct WindowOption {
    /// Number of slots per sender, which limits the sender's messages in flight
    #[arg(long, value_name = "SLOTS", default_value_t = WINDOW_DEFAULT,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(WINDOW_MAX)))]
    pub window: u32,
}

/// The time limit for joining.
#[derive(Args, Clone, Copy, Debug)]
pub struct JoinOption {
    /// Time limit for all members to start, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true,
          value_parser = seconds)]
    pub join_timeout: Duration,
}

/// Returns the algorithm with that name, or a usage error if it needs racks.
pub fn without_racks(name: AlgorithmName) -> Result<Algorithm, Failure> {
    let needed =
        || Failure::usage("the members are not in several racks", "give another --algorithm");
    name.of_no_racks().ok_or_else(needed)
}

/// Maximum time that may be requested, in seconds: ten years, which can be added to any clock.
const SECONDS_MAX: f64 = 315_360_000.0;

/// Parses a time in seconds: `2`, `0.5`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return Err("not between 0 and ten years".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Parses the size of the largest record, given that a slot also holds `framing` bytes.
pub fn record_bytes<const FRAMING: u32>(text: &str) -> Result<u32, String> {
    let limit = MESSAGE_MAX - FRAMING;
    match text.parse::<u32>() {
        Ok(bytes) if bytes <= limit => Ok(bytes),
        _ => Err(format!("not a number of bytes from 0 to {limit}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_timeout_outside_device_range_is_refused() {
        assert_eq!(loss_timeout("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "NaN", "inf", "1e9", "x"] {
            assert!(loss_timeout(bad).is_err(), "{bad}");
        }
    }

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        device: DeviceArguments,
    }

    #[test]
    fn device_options_are_parsed_and_named() {
        let command = <Program as clap::CommandFactory>::command();
        let names: Vec<String> = command
            .get_arguments()
            .filter(|argument| argument.get_help_heading() == Some("RDMA"))
            .filter_map(|argument| argument.get_long().map(|name| format!("--{name}")))
            .collect();
        assert!(names.len() >= 12, "{names:?}");
        for name in names {
            let value = match name.as_str() {
                "--grh" | "--huge-pages" => None,
                "--device" => Some("mlx5_0"),
                "--pkey" => Some("0x8001"),
                "--rdma-order" => Some("none"),
                _ => Some("1"),
            };
            let arguments = ["test", name.as_str()].into_iter().chain(value);
            let program = <Program as clap::Parser>::try_parse_from(arguments).expect(&name);
            assert_eq!(program.device.given(), Some(name.as_str()));
            assert_ne!(program.device.options(), DeviceOptions::default());
        }
        assert_eq!(DeviceArguments::default().given(), None);
    }

    #[test]
    fn out_of_range_device_options_are_refused() {
        for (option, value) in [
            ("--service-level", "16"),
            ("--traffic-class", "256"),
            ("--timer-floor", "32"),
            ("--pkey", "0x8000"),
            ("--completion-vector", "-1"),
        ] {
            let read = <Program as clap::Parser>::try_parse_from(["test", option, value]);
            assert!(read.is_err(), "{option} {value}");
        }
    }

    #[test]
    fn every_fabric_name_is_accepted_as_option() {
        for wanted in Carrier::ALL {
            let mut command = clap::Command::new("test")
                .arg(clap::Arg::new("fabric").long("fabric").value_parser(carrier()));
            let matches = command
                .try_get_matches_from_mut(["test", "--fabric", wanted.name()])
                .expect("a fabric of that name");
            assert_eq!(matches.get_one::<Carrier>("fabric"), Some(&wanted));
        }
    }

    #[test]
    fn times_are_parsed_as_seconds() {
        assert_eq!(seconds("2"), Ok(Duration::from_secs(2)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["", "x", "-1", "NaN", "inf", "1e300", "2s"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn maximum_record_size_leaves_room_for_framing() {
        assert_eq!(record_bytes::<0>("268435456"), Ok(MESSAGE_MAX));
        assert_eq!(record_bytes::<1>("268435455"), Ok(MESSAGE_MAX - 1));
        for bad in ["268435456", "-1", "x", "99999999999999999999"] {
            assert!(record_bytes::<1>(bad).is_err(), "{bad}");
        }
    }
}
