//! Options that the program and the benches share: fabrics, RDMA devices, algorithms.
//!
//! The library that programs link knows no command line, so the types that `clap` fills are here.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tramontane_core::rdmc::Algorithm;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::rdma::{DeviceOptions, Gid};

/// What a value is called on the command line.
#[must_use]
pub fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Reads the name of a fabric.
#[must_use]
pub fn carrier() -> impl TypedValueParser<Value = Carrier> {
    let names = PossibleValuesParser::new([
        PossibleValue::new("shm").alias("shared-memory").help("Shared memory, on this machine"),
        PossibleValue::new("tcp").help("TCP, on this machine or between hosts"),
        PossibleValue::new("verbs").help("RDMA, if this program is built with the feature verbs"),
    ]);
    names.map(|name| name.parse().unwrap_or_default())
}

/// The algorithms, as they are named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlgorithmName {
    /// The root sends the whole message to one member after the other
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
    /// The algorithm, where members are of no racks; none if it needs them.
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

/// Which RDMA device is taken, where the first that works is not wanted.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceArguments {
    /// The RDMA device [default: the first usable one; see 'tramontane verbs devices']
    #[arg(long, value_name = "NAME", help_heading = "RDMA")]
    pub device: Option<String>,
    /// The port of the device [default: the first active port]
    #[arg(long, value_name = "NUMBER", help_heading = "RDMA")]
    pub port: Option<u8>,
    /// The GID, by index or as an address [default: the address at which the members meet, if the
    /// device has it, else RoCE v2 over IPv4 first]
    #[arg(long, value_name = "GID", help_heading = "RDMA")]
    pub gid: Option<Gid>,
    /// The largest packet payload, in bytes [default: that of the port]
    #[arg(long, value_name = "BYTES", help_heading = "RDMA")]
    pub mtu: Option<u32>,
    /// How long a peer may leave writes unacknowledged before it counts as lost, in seconds
    /// [default: 1]
    #[arg(long, value_name = "SECONDS", help_heading = "RDMA", value_parser = loss_timeout)]
    pub loss_timeout: Option<Duration>,
}

impl DeviceArguments {
    /// As the library takes them.
    #[must_use]
    pub fn options(&self) -> DeviceOptions {
        let Self { device, port, gid, mtu, loss_timeout } = self.clone();
        DeviceOptions { device, port, gid, mtu, loss_timeout }
    }

    /// The first option that was given, by name: none of them means anything to another fabric.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        given(&self.options())
    }
}

/// The first option that was given, by its name on the command line.
#[must_use]
pub fn given(options: &DeviceOptions) -> Option<&'static str> {
    let DeviceOptions { device, port, gid, mtu, loss_timeout } = options;
    let all = [
        ("--device", device.is_some()),
        ("--port", port.is_some()),
        ("--gid", gid.is_some()),
        ("--mtu", mtu.is_some()),
        ("--loss-timeout", loss_timeout.is_some()),
    ];
    all.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

/// The longest loss time: devices count to about half a day.
const LOSS_SECONDS_MAX: f64 = 3_600.0;

fn loss_timeout(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.001..=LOSS_SECONDS_MAX).contains(&seconds) {
        return Err("not between a millisecond and an hour".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_times_are_what_devices_can_count() {
        assert_eq!(loss_timeout("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "NaN", "inf", "1e9", "x"] {
            assert!(loss_timeout(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_fabric_has_its_name_among_the_options() {
        for wanted in Carrier::ALL {
            let mut command = clap::Command::new("test")
                .arg(clap::Arg::new("fabric").long("fabric").value_parser(carrier()));
            let matches = command
                .try_get_matches_from_mut(["test", "--fabric", wanted.name()])
                .expect("a fabric of that name");
            assert_eq!(matches.get_one::<Carrier>("fabric"), Some(&wanted));
        }
    }
}
