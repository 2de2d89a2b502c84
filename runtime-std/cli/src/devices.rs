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
    use serde::Serialize;
    use tramontane_verbs::devices::{Choice, Device, Devices, Gid, GidKind, Wanted};
    use tramontane_verbs::timing::LossTimes;

    use super::Arguments;
    use crate::exit::Failure;
    use crate::output::print_result;
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
        let (chosen, loss_time_ms) = (choice.as_ref().ok(), loss_time.as_millis());
        let taken = chosen.map(|choice| Taken {
            device: &choice.name,
            port: choice.port,
            gid: choice.gid,
            mtu_bytes: choice.mtu_bytes,
        });
        let listing = Listing { devices: &devices.devices, choice: taken, why, loss_time_ms };
        print_result(arguments.json, &listing, |listing| {
            let taken = chosen.map(|choice| taken_text(choice, &listing.why));
            let given_up = format!("a silent peer is given up after {loss_time_ms} ms\n");
            format!("{devices}{}", taken.map_or_else(String::new, |taken| taken + &given_up))
        })?;
        choice.map(drop).map_err(|error| tramontane_verbs::JoinError::from(error).into())
    }

    fn taken_text(choice: &Choice, why: &str) -> String {
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
