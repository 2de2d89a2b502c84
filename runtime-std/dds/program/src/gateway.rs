//! `tramontane-dds gateway`: mirrors topics to other implementations of DDS and back, over RTPS.
//!
//! Only a program that was built with the feature `rtps` has an RTPS end. Every build knows the
//! command, and says how to build it.

use std::net::IpAddr;

use clap::Args;

use super::part::PartOptions;
use tramontane_local::exit::Failure;

pub(super) const EXAMPLES: &str =
    "  tramontane-dds gateway --domain flight.toml --id 0 --mirror Tracks
      samples of the RTPS topic Tracks enter the order; what is written here goes out to it
  tramontane-dds gateway --domain flight.toml --id 0 --mirror Tracks=Raw,Ordered
      samples of Raw enter the order, and all of the order goes out to Ordered
  tramontane-dds gateway --domain flight.toml --id 1 --gateways 0,1 --mirror Tracks
      takes over when node 0 is gone; node 0 is started with the same --gateways
  tramontane-dds gateway --domain flight.toml --id 0 --data /var/lib/gateway --mirror Records
      in a domain with logged topics: it comes back from its logs";

/// Mirror topics to other implementations of DDS and back, over RTPS
#[derive(Args, Debug)]
pub(crate) struct GatewayCommand {
    #[command(flatten)]
    part: PartOptions,
    /// A topic that is mirrored to the RTPS topic of its name; or the RTPS topics that it takes
    /// samples from and gives them to. It can be given several times
    #[arg(long, value_name = "TOPIC[=FROM,TO]", required = true, value_parser = mirror)]
    mirror: Vec<Mirrored>,
    /// The number of the RTPS domain
    #[arg(long, value_name = "NUMBER", default_value = "0",
          value_parser = clap::value_parser!(u16).range(..=232))]
    rtps_domain: u16,
    /// The nodes that are gateways for these topics. The first that is a member passes samples on
    /// [default: this node]
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    gateways: Vec<u32>,
    /// The address of the network that RTPS uses [default: all networks]
    #[arg(long, value_name = "ADDRESS")]
    network: Option<IpAddr>,
}

/// A topic, and the RTPS topics that it is mirrored from and to.
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
                .ok_or_else(|| format!("two RTPS topics are wanted: {topic}=FROM,TO"))?;
            (topic, reads, writes)
        }
    };
    if [topic, reads, writes].iter().any(|name| name.is_empty()) {
        return Err("the name of a topic is empty".to_owned());
    }
    let [topic, reads, writes] = [topic, reads, writes].map(str::to_owned);
    Ok(Mirrored { topic, reads, writes })
}

/// Refuses: this program has no RTPS end.
#[cfg(not(feature = "rtps"))]
pub(super) fn run(_: &GatewayCommand) -> Result<(), Failure> {
    Err(Failure::usage(
        "this program was built without RTPS",
        "build it with cargo build --release -p tramontane-dds-program --features rtps",
    ))
}

/// Joins, mirrors until it is told to end, and leaves.
#[cfg(feature = "rtps")]
pub(super) fn run(arguments: &GatewayCommand) -> Result<(), Failure> {
    use std::io::{self, Write as _};
    use std::time::Duration;

    use tramontane_dds::gateway::{Gateway, GatewayOptions, MirrorCounts, MirrorOptions};

    use tramontane_local::interrupt::Interrupts;

    /// Between two looks at signals and at the group.
    const TICK: Duration = Duration::from_millis(50);

    /// How long the others may take to go on without this one.
    const LEAVE: Duration = Duration::from_secs(10);

    let interrupts = Interrupts::watch()?;
    let participant = arguments.part.join(&arguments.part.domain()?)?;
    let gateways = if arguments.gateways.is_empty() {
        vec![arguments.part.id]
    } else {
        arguments.gateways.clone()
    };
    let (rtps_domain, network) = (arguments.rtps_domain, arguments.network);
    let mut gateway = Gateway::open(GatewayOptions { rtps_domain, gateways, network })?;
    for Mirrored { topic, reads, writes } in arguments.mirror.iter().cloned() {
        gateway.mirror(&participant, &MirrorOptions { topic, reads, writes })?;
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
        // Out of the group, for another gateway to take over.
        outcome = gateway.failure().map_or(Ok(()), |failure| Err(failure.into()));
        std::thread::sleep(TICK);
    }
    for (topic, counts) in gateway.counts() {
        let MirrorCounts { entered, went_out, left_out } = counts;
        writeln!(out, "{topic}: {entered} entered, {went_out} went out, {left_out} left out")
            .map_err(|error| Failure::output(&error))?;
    }
    drop(gateway);
    participant.leave(LEAVE)?;
    outcome
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
