//! `tramontane-dds gateway`: mirrors topics to other implementations of DDS and back, over RTPS.
//!
//! Only a program built with the feature `rtps` has an RTPS side. Every build accepts the command,
//! but without the feature, the command only says how to build with it.

use std::net::IpAddr;

use clap::Args;

use super::part::PartOptions;
use tramontane_local::exit::{Failure, Status};

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 4] =
    [Status::Resources, Status::Group, Status::PeerLost, Status::Out];

pub(super) const EXAMPLES: &str =
    "  tramontane-dds gateway --domain flight.toml --id 0 --mirror Tracks
      samples of the RTPS topic Tracks enter the order; samples from here go out to it
  tramontane-dds gateway --domain flight.toml --id 0 --mirror Tracks=Raw,Ordered
      samples of Raw enter the order, and all of the order goes out to Ordered
  tramontane-dds gateway --domain flight.toml --id 1 --gateways 0,1 --mirror Tracks
      takes over if node 0 is lost; node 0 must have the same --gateways
  tramontane-dds gateway --domain flight.toml --id 0 --data /var/lib/gateway --mirror Records
      in a domain with logged topics: it recovers from its logs after a restart";

/// Mirror topics to other implementations of DDS and back, over RTPS
#[derive(Args, Debug)]
pub(crate) struct GatewayCommand {
    #[command(flatten)]
    part: PartOptions,
    /// A topic to mirror to the RTPS topic of the same name, or, after an equals sign, the RTPS
    /// topics to read samples from and write them to. Can be repeated
    #[arg(long, value_name = "TOPIC[=FROM,TO]", required = true, value_parser = mirror)]
    mirror: Vec<Mirrored>,
    /// The number of the RTPS domain
    #[arg(long, value_name = "NUMBER", default_value = "0",
          value_parser = clap::value_parser!(u16).range(..=232))]
    rtps_domain: u16,
    /// The nodes that are gateways for these topics. The first one that is a member forwards
    /// samples [default: this node]
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    gateways: Vec<u32>,
    /// The address of the network that RTPS uses [default: all networks]
    #[arg(long, value_name = "ADDRESS")]
    network: Option<IpAddr>,
}

/// A topic, and the RTPS topics from and to which it is mirrored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirrored {
    topic: String,
    reads: String,
    writes: String,
}

fn mirror(text: &str) -> Result<Mirrored, String> {
    let (topic, reads, writes) = match text.split_once('=') {
        None => (text, text, text),
        Some((topic, names)) => {
            let (reads, writes) = names
                .split_once(',')
                .ok_or_else(|| format!("give two RTPS topics: {topic}=FROM,TO"))?;
            (topic, reads, writes)
        }
    };
    if [topic, reads, writes].iter().any(|name| name.is_empty()) {
        return Err("a topic's name is empty; give each topic a name".to_owned());
    }
    let [topic, reads, writes] = [topic, reads, writes].map(str::to_owned);
    Ok(Mirrored { topic, reads, writes })
}

/// Refuses to run, because this program has no RTPS side.
#[cfg(not(feature = "rtps"))]
pub(super) fn run(_: &GatewayCommand) -> Result<(), Failure> {
    Err(Failure::usage(
        "this program was built without RTPS",
        "build it with cargo build --release -p tramontane-dds-program --features rtps",
    ))
}

/// Joins, mirrors until it receives a signal, and leaves.
#[cfg(feature = "rtps")]
pub(super) fn run(arguments: &GatewayCommand) -> Result<(), Failure> {
    use std::io::{self, Write as _};
    use std::time::Duration;

    use tramontane_dds::gateway::{Gateway, GatewayOptions, MirrorCounts, MirrorOptions};

    use tramontane_local::interrupt::Interrupts;

    /// Interval between checks for signals and of the group.
    const TICK: Duration = Duration::from_millis(50);

    let interrupts = Interrupts::watch()?;
    let domain = arguments.part.domain()?;
    arguments.part.as_member(&domain, &interrupts, |participant| {
        let gateways = if arguments.gateways.is_empty() {
            vec![arguments.part.id]
        } else {
            arguments.gateways.clone()
        };
        let (rtps_domain, network) = (arguments.rtps_domain, arguments.network);
        let mut gateway = Gateway::open(GatewayOptions { rtps_domain, gateways, network })?;
        for Mirrored { topic, reads, writes } in arguments.mirror.iter().cloned() {
            gateway.mirror(participant, &MirrorOptions { topic, reads, writes })?;
        }
        let mut out = io::stdout().lock();
        for Mirrored { topic, reads, writes } in &arguments.mirror {
            writeln!(out, "{topic}: from RTPS topic {reads}, to RTPS topic {writes}")
                .map_err(|error| Failure::output(&error))?;
        }
        out.flush().map_err(|error| Failure::output(&error))?;
        let mut outcome = Ok(());
        while !interrupts.is_asked() && outcome.is_ok() {
            if let Some(stopped) = participant.stopped() {
                return Err(stopped.into());
            }
            // This gateway leaves the group, so that another one takes over.
            outcome = gateway.failure().map_or(Ok(()), |failure| Err(failure.into()));
            std::thread::sleep(TICK);
        }
        for (topic, counts) in gateway.counts() {
            let MirrorCounts { entered, went_out, left_out } = counts;
            writeln!(
                out,
                "{topic}: {entered} samples entered, {went_out} were forwarded, {left_out} were \
                 dropped"
            )
            .map_err(|error| Failure::output(&error))?;
        }
        outcome
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_option_accepts_one_or_two_rtps_topics() {
        let of = |topic: &str, reads: &str, writes: &str| {
            let [topic, reads, writes] = [topic, reads, writes].map(str::to_owned);
            Ok(Mirrored { topic, reads, writes })
        };
        assert_eq!(mirror("Tracks"), of("Tracks", "Tracks", "Tracks"));
        assert_eq!(mirror("Tracks=Raw,Ordered"), of("Tracks", "Raw", "Ordered"));
        for wrong in ["", "=", "Tracks=", "Tracks=Raw", "Tracks=Raw,", "Tracks=,Ordered", "=a,b"] {
            mirror(wrong).expect_err(wrong);
        }
    }
}
