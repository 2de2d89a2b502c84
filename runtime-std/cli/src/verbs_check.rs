//! `tramontane verbs check`: an acceptance test of RDMA between two hosts, with a verdict for each
//! property that the fabric needs from their devices and the network between them.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};

use clap::Args;
use serde::Serialize;
use tramontane_verbs::check::{self, CheckError, End, Finding, FindingVerdict, Options, TcpTalk};

use tramontane_local::exit::{Failure, Status};
use tramontane_local::output::print_result;

pub(super) const EXAMPLES: &str = "  tramontane verbs check --listen 10.9.0.1:7009     on one host
  tramontane verbs check 10.9.0.1:7009              on the other
      both print the same verdicts, for both directions
  tramontane verbs check --loopback
      both ends in this process, over one device: checks the device without the network
  tramontane verbs check 10.9.0.1:7009 --device mlx5_1 --gid 3 --rounds 1000000 --json";

#[derive(Args, Debug)]
pub(super) struct CheckOptions {
    /// Address at which the other host listens
    #[arg(
        value_name = "HOST:PORT",
        required_unless_present_any = ["listen", "loopback"],
        conflicts_with_all = ["listen", "loopback"]
    )]
    other: Option<String>,
    /// Wait at this address for the other host
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "loopback")]
    listen: Option<String>,
    /// Run both ends in this process, over one device
    #[arg(long)]
    loopback: bool,
    /// Rounds of each ordering check; the same on both hosts
    #[arg(long, value_name = "COUNT", default_value_t = 10_000,
        value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    #[command(flatten)]
    device: tramontane_local::options::DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct CheckReport {
    /// The side that this process takes, as named in the findings.
    end: End,
    passed: bool,
    findings: Vec<Finding>,
}

/// Runs the checks, and prints each finding as it arrives.
pub(super) fn run(arguments: &CheckOptions) -> Result<(), Failure> {
    let device = arguments.device.options();
    let options = Options {
        wanted: device.wanted(),
        limits: device.limits(),
        meeting: None,
        rounds: arguments.rounds,
    };
    let (end, findings) = if arguments.loopback {
        (End::First, loopback(&options, arguments.json)?)
    } else {
        let (end, stream) = meet(arguments)?;
        let meeting = stream.local_addr().ok().map(|address| address.ip().to_canonical());
        (end, make(&Options { meeting, ..options }, end, stream, arguments.json)?)
    };
    let failed = findings.iter().filter(|found| found.verdict == FindingVerdict::Failed).count();
    let report = CheckReport { end, passed: failed == 0, findings };
    if arguments.json {
        print_result(true, &report, |_| String::new())?;
    }
    if failed == 0 {
        return Ok(());
    }
    let what = format!("{failed} of {} checks failed", report.findings.len());
    Err(Failure::new(
        Status::Device,
        what,
        "follow the advice printed with each of them, and run the check again",
    ))
}

/// Opens the connection between the two sides.
fn meet(arguments: &CheckOptions) -> Result<(End, TcpStream), Failure> {
    let advice = "give the address at which the other host listens, such as 10.9.0.1:7009";
    if let Some(address) = &arguments.listen {
        let failed = |error| {
            let what = format_args!("cannot listen at {address}: {error}");
            Failure::usage(what, "give an address of this host and a free port")
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        // If standard error fails, the notice is lost.
        let _ = writeln!(io::stderr(), "waiting for the other host at {address}");
        let (stream, _) = listener.accept().map_err(failed)?;
        return Ok((End::First, stream));
    }
    let address = arguments.other.as_deref().unwrap_or_default();
    let stream = TcpStream::connect(address)
        .map_err(|error| Failure::group(format_args!("cannot reach {address}: {error}"), advice))?;
    Ok((End::Second, stream))
}

fn make(
    options: &Options,
    end: End,
    stream: TcpStream,
    json: bool,
) -> Result<Vec<Finding>, Failure> {
    let failed = |error| Failure::system("cannot communicate with the other end", &error);
    let mut talk = TcpTalk::new(stream).map_err(failed)?;
    let mut written = Ok(());
    let findings = check::run(options, end, &mut talk, |found| {
        if !json && written.is_ok() {
            written = print(end, found);
        }
    });
    written.map_err(|error| Failure::output(&error))?;
    Ok(findings?)
}

/// Runs both sides in this process. The second side runs in a thread and has the same findings.
fn loopback(options: &Options, json: bool) -> Result<Vec<Finding>, Failure> {
    let failed = |error| Failure::system("cannot open sockets on the loopback", &error);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    std::thread::scope(|scope| {
        let second = scope.spawn(move || {
            let mut talk = TcpTalk::new(TcpStream::connect(address)?)?;
            check::run(options, End::Second, &mut talk, |_| {})
        });
        let (stream, _) = listener.accept().map_err(failed)?;
        let first = make(options, End::First, stream, json);
        // If the second side fails, its error is the cause of the first side's error, or is the
        // same error.
        match (first, second.join()) {
            (Err(_), Ok(Err(error @ CheckError::Device(_)))) => Err(error.into()),
            (first, _) => first,
        }
    })
}

fn print(own: End, found: &Finding) -> io::Result<()> {
    let direction = if found.from == own { "to them" } else { "from them" };
    let (verdict, check) = (found.verdict.name(), found.check.name());
    writeln!(io::stdout(), "{verdict:<8} {direction:<10} {check:<24} {}", found.text)
}
