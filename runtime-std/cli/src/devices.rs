//! `tramontane verbs devices`: the RDMA devices of this machine, which of them would be taken, and
//! why (HAL-3).

use clap::{Args, Subcommand};

use super::exit::Failure;

pub(super) const EXAMPLES: &str = "  tramontane verbs devices
      all devices: limits, promises about order, ports, addresses; and which would be used
  tramontane verbs devices --device mlx5_1 --gid 3
      whether these would work
  tramontane verbs devices --json";

/// About RDMA.
#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// List RDMA devices with their limits and promises, and which would be used and why
    #[command(after_help = super::exit::help(EXAMPLES))]
    Devices(Arguments),
}

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    device: tramontane_local::options::DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the devices.
pub(super) fn run(command: &Command) -> Result<(), Failure> {
    let Command::Devices(arguments) = command;
    list(arguments)
}

#[cfg(not(feature = "verbs"))]
fn list(_: &Arguments) -> Result<(), Failure> {
    Err(tramontane_runtime::rdma::NotBuilt.into())
}

#[cfg(feature = "verbs")]
use with_verbs::list;

#[cfg(feature = "verbs")]
mod with_verbs {
    use std::io::{self, Write as _};

    use serde::Serialize;
    use tramontane_verbs::devices::{Choice, Device, Devices, Gid, GidKind, Wanted};
    use tramontane_verbs::timing::LossTimes;

    use super::Arguments;
    use crate::exit::Failure;
    use tramontane_runtime::rdma::{self, DeviceOptions};

    /// What `--json` prints.
    #[derive(Serialize)]
    struct Listing<'l> {
        devices: &'l [Device],
        /// What would be taken; nothing if nothing can be.
        choice: Option<Taken<'l>>,
        /// Why, or why nothing.
        why: String,
        /// When a silent peer is given up: what was given, as devices count.
        loss_time_ms: u128,
    }

    #[derive(Serialize)]
    struct Taken<'l> {
        device: &'l str,
        port: u8,
        gid: Gid,
        mtu_bytes: u32,
    }

    pub(super) fn list(arguments: &Arguments) -> Result<(), Failure> {
        let devices = rdma::discover()?;
        let options = arguments.device.options();
        let wanted = options.wanted();
        let choice = devices.choose(&wanted);
        let loss_time = LossTimes::at_least(options.limits().loss_time).total();
        let why = match &choice {
            Ok(choice) => why(&options, &wanted, &devices, choice),
            Err(error) => error.to_string(),
        };
        let text = if arguments.json {
            let choice = choice.as_ref().ok().map(|choice| Taken {
                device: &choice.name,
                port: choice.port,
                gid: choice.gid,
                mtu_bytes: choice.mtu_bytes,
            });
            let loss_time_ms = loss_time.as_millis();
            let listing = Listing { devices: &devices.devices, choice, why, loss_time_ms };
            serde_json::to_string(&listing)
                .map_err(|error| Failure::system("cannot print", &error.into()))?
                + "\n"
        } else {
            let taken = choice.as_ref().map_or_else(
                |_| String::new(),
                |choice| {
                    let taken = taken(choice, &why);
                    format!("{taken}a silent peer is given up after {} ms\n", loss_time.as_millis())
                },
            );
            format!("{devices}{taken}")
        };
        let mut output = io::stdout().lock();
        output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush())
            .map_err(|error| Failure::output(&error))?;
        choice.map(drop).map_err(|error| tramontane_verbs::JoinError::from(error).into())
    }

    fn taken(choice: &Choice, why: &str) -> String {
        let Choice { name, port, gid, mtu_bytes, .. } = choice;
        format!(
            "takes {name} port {port} GID {} ({}), MTU {mtu_bytes} B: {why}\n",
            gid.index, gid.address
        )
    }

    fn why(options: &DeviceOptions, wanted: &Wanted, devices: &Devices, choice: &Choice) -> String {
        let device = match (&wanted.device, devices.devices.len()) {
            (Some(_), _) => "the device that was given",
            (None, 1) => "the only device",
            (None, _) => "the first device with an active port and an address",
        };
        let gid = match (options.gid, choice.gid.kind) {
            (Some(_), _) => "the address that was given",
            (None, GidKind::InfiniBand) => "its first address",
            (None, GidKind::RoceV2) if choice.gid.address.to_ipv4_mapped().is_some() => {
                "RoCE v2 over IPv4 before all others"
            }
            (None, GidKind::RoceV2) => "RoCE v2, and none over IPv4",
            (None, GidKind::RoceV1) => "no RoCE v2 address",
        };
        format!("{device}; {gid} (members that meet at an address of a device take that one)")
    }
}
