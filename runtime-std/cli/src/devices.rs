//! `tramontane verbs`: the RDMA devices of this machine, the one that would be used, and the reason
//! (HAL-3).

use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use tramontane_runtime::rdma::{self, DeviceOptions};
use tramontane_verbs::devices::{Choice, Device, Devices, Gid, GidKind, Wanted};
use tramontane_verbs::timing::LossTimes;

use tramontane_local::exit::{Failure, Status};
use tramontane_local::output::print_result;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 2] = [Status::Group, Status::Device];

pub(super) const EXAMPLES: &str = "  tramontane verbs devices
      all devices: limits, ordering guarantees, ports, addresses, and the one that would be used
  tramontane verbs devices --device mlx5_1 --gid 3
      whether these would work
  tramontane verbs devices --loss-timeout 0.5 --timer-floor 12
      the time until a silent peer is declared lost, if the firmware accepts exponents of 12 or \
more
  tramontane verbs devices --pkey 0x8001 --service-level 3 --traffic-class 106
      whether the port is in that partition
  tramontane verbs devices --json
  tramontane verbs check --help
      an acceptance test between two hosts";

/// About RDMA.
#[derive(Subcommand, Debug)]
pub(super) enum VerbsCommand {
    /// List RDMA devices with their limits and guarantees; show which one would be used and why
    #[command(after_help = tramontane_local::exit::help(EXAMPLES, &STATUSES))]
    Devices(DevicesOptions),
    /// Check between two hosts that devices and network meet the needs of RDMA groups: order,
    /// denial, loss
    #[command(after_help = tramontane_local::exit::help(super::verbs_check::EXAMPLES, &STATUSES))]
    Check(super::verbs_check::CheckOptions),
}

#[derive(Args, Debug)]
pub(super) struct DevicesOptions {
    #[command(flatten)]
    device: tramontane_local::options::DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the devices, or checks them.
pub(super) fn run(command: &VerbsCommand) -> Result<(), Failure> {
    match command {
        VerbsCommand::Devices(arguments) => list(arguments),
        VerbsCommand::Check(arguments) => super::verbs_check::run(arguments),
    }
}

/// The output of `--json`.
#[derive(Serialize)]
struct Listing<'l> {
    devices: &'l [Device],
    /// The device that would be used; `None` if no device can be used.
    choice: Option<ChosenDevice<'l>>,
    /// The reason for the choice, or for there being none.
    why: String,
    /// Shortest time after which a silent peer is given up: the configured time, rounded to a value
    /// that the device supports.
    loss_time_ms: u128,
    /// Longest time after which a silent peer is given up, including late retransmissions and the
    /// firmware's minimum.
    loss_time_ms_max: u128,
}

#[derive(Serialize)]
struct ChosenDevice<'l> {
    device: &'l str,
    port: u8,
    gid: Gid,
    mtu_bytes: u32,
}

fn list(arguments: &DevicesOptions) -> Result<(), Failure> {
    let options = arguments.device.options();
    let devices = rdma::discover(&options)?;
    let wanted = options.wanted();
    let choice = devices.choose(&wanted);
    let times = choice.as_ref().ok().map(|choice| {
        let (limits, kind) = (options.limits(), devices.devices[choice.device].kind);
        LossTimes::at_least(limits.loss_time, kind, limits.timeout_exponent_floor)
    });
    let why = match &choice {
        Ok(choice) => why(&options, &wanted, &devices, choice),
        Err(error) => error.to_string(),
    };
    let chosen = choice.as_ref().ok();
    let milliseconds = |time: fn(&LossTimes) -> Duration| {
        times.as_ref().map_or(0, |times| time(times).as_millis())
    };
    let loss_time_ms = milliseconds(LossTimes::least);
    let loss_time_ms_max = milliseconds(LossTimes::longest);
    let taken = chosen.map(|choice| ChosenDevice {
        device: &choice.name,
        port: choice.port,
        gid: choice.gid,
        mtu_bytes: choice.mtu_bytes,
    });
    let listing =
        Listing { devices: &devices.devices, choice: taken, why, loss_time_ms, loss_time_ms_max };
    print_result(arguments.json, &listing, |listing| {
        let taken = chosen.map(|choice| taken_text(choice, &listing.why));
        let given_up = format!(
            "a silent peer is declared lost after at least {loss_time_ms} ms and at most \
             {loss_time_ms_max} ms\n"
        );
        format!("{devices}{}", taken.map_or_else(String::new, |taken| taken + &given_up))
    })?;
    choice.map(drop).map_err(|error| tramontane_verbs::JoinError::from(error).into())
}

fn taken_text(choice: &Choice, why: &str) -> String {
    let Choice { name, port, gid, mtu_bytes, .. } = choice;
    format!(
        "uses {name} port {port} GID {} ({}), MTU {mtu_bytes} B: {why}\n",
        gid.index, gid.address
    )
}

fn why(options: &DeviceOptions, wanted: &Wanted, devices: &Devices, choice: &Choice) -> String {
    let device = match (&wanted.device, devices.devices.len()) {
        (Some(_), _) => "the requested device",
        (None, 1) => "the only device",
        (None, _) => "the first device with an active port and an address",
    };
    let gid = match (options.gid, choice.gid.kind) {
        (Some(_), _) => "the requested address",
        (None, GidKind::InfiniBand) => "its first address",
        (None, GidKind::RoceV2) if choice.gid.address.to_ipv4_mapped().is_some() => {
            "RoCE v2 over IPv4, which is preferred"
        }
        (None, GidKind::RoceV2) => "RoCE v2, because there is no address over IPv4",
        (None, GidKind::RoceV1) => "RoCE v1, because there is no RoCE v2 address",
    };
    format!(
        "{device}; {gid} (members that meet at an address of a device, or of its network \
         interface, use that address)"
    )
}
