//! What the TCP fabric carries, beside what bare TCP carries on the same machine in the same minute.
//!
//! `cargo run --release --example tcp_throughput -- --bytes 10240`
//!
//! Three processes on loopback, all of which send all the time. The probe is a mesh of bare connections, written and
//! read in large pieces, with no protocol. Runs of both take turns; the figure of a run is that of its median member.

mod multicast;
mod probe;

use std::net::{SocketAddr, TcpListener};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;

/// How long a process warms up before it counts, and goes on after it has, for the sake of the others.
const MARGIN: Duration = Duration::from_millis(500);

type Failure = Box<dyn std::error::Error>;

#[derive(Clone, Debug, Parser)]
struct Options {
    /// Members, all of which send.
    #[arg(long, default_value_t = 3)]
    nodes: u16,
    /// Bytes of a message.
    #[arg(long, default_value_t = 10_240)]
    bytes: u32,
    /// Slots a sender has.
    #[arg(long, default_value_t = 100)]
    window: u32,
    /// Runs of each kind.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// How long each process counts, in milliseconds.
    #[arg(long, default_value_t = 2000)]
    count_ms: u64,
    /// Seal everything with a key.
    #[arg(long)]
    keyed: bool,
    /// Build and read each byte of a message.
    #[arg(long)]
    touch: bool,
    /// Kinds that are run, in turn.
    #[arg(long, value_delimiter = ',', default_value = "probe,multicast")]
    kinds: Vec<String>,
    /// How long a member without work looks again before it sleeps, in microseconds.
    #[arg(long, default_value_t = 0)]
    idle_us: u64,
    /// The kernel's buffers, in bytes, rather than those that it chooses.
    #[arg(long)]
    socket_bytes: Option<usize>,
    /// This process is one of a run: its rank.
    #[arg(long, hide = true)]
    rank: Option<u16>,
    /// Where the members of the run listen.
    #[arg(long, hide = true, value_delimiter = ',')]
    addresses: Vec<SocketAddr>,
}

/// What one process saw while it counted.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Bytes a second that came from other processes.
    received: f64,
    /// Messages a second delivered, the own ones too; a probe has none.
    delivered: f64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match options.rank {
        Some(rank) => member(&options, rank),
        None => runs(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tcp_throughput: {error}");
            ExitCode::FAILURE
        }
    }
}

fn member(options: &Options, rank: u16) -> Result<(), Failure> {
    let seen = match options.kinds.first().map(String::as_str) {
        Some("probe") => probe::run(options, rank)?,
        Some("multicast") => multicast::run(options, rank)?,
        other => return Err(format!("{other:?} is neither probe nor multicast").into()),
    };
    println!("{} {}", seen.received, seen.delivered);
    Ok(())
}

fn runs(options: &Options) -> Result<(), Failure> {
    let mut figures = vec![Vec::new(); options.kinds.len()];
    for run in 1..=options.runs {
        for (kind, figures) in options.kinds.iter().zip(&mut figures) {
            let seen = one_run(options, kind)?;
            println!("run {run} {kind:9}  {}", line(seen));
            figures.push(seen);
        }
    }
    for (kind, figures) in options.kinds.iter().zip(&figures) {
        let of = |field: fn(&Seen) -> f64| {
            let mut all: Vec<f64> = figures.iter().map(field).collect();
            all.sort_by(f64::total_cmp);
            (all[all.len() / 2], all[0], all[all.len() - 1])
        };
        let (bytes, messages) = (of(|seen| seen.received), of(|seen| seen.delivered));
        println!(
            "{kind:9} received {:.0} MB/s ({:.0} to {:.0}); delivered {:.3} M messages/s ({:.3} to {:.3})",
            bytes.0 / 1e6,
            bytes.1 / 1e6,
            bytes.2 / 1e6,
            messages.0 / 1e6,
            messages.1 / 1e6,
            messages.2 / 1e6
        );
    }
    Ok(())
}

fn line(seen: Seen) -> String {
    format!("{:8.1} MB/s from peers  {:8.3} M messages/s", seen.received / 1e6, seen.delivered / 1e6)
}

/// Starts the processes of one run, and gives what its median member saw.
fn one_run(options: &Options, kind: &str) -> Result<Seen, Failure> {
    let listeners =
        (0..options.nodes).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>()?;
    let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<SocketAddr>, _>>()?;
    drop(listeners);
    let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let processes = (0..options.nodes)
        .map(|rank| {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["--kinds", kind, "--addresses", &addresses, "--rank", &rank.to_string()]);
            command.args(["--bytes", &options.bytes.to_string(), "--window", &options.window.to_string()]);
            command.args([
                "--nodes",
                &options.nodes.to_string(),
                "--count-ms",
                &options.count_ms.to_string(),
            ]);
            command.args(["--idle-us", &options.idle_us.to_string()]);
            if let Some(bytes) = options.socket_bytes {
                command.args(["--socket-bytes", &bytes.to_string()]);
            }
            command.args(options.keyed.then_some("--keyed")).args(options.touch.then_some("--touch"));
            command.stdout(Stdio::piped()).spawn()
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut seen = Vec::new();
    for process in processes {
        let output = process.wait_with_output()?;
        let text = String::from_utf8(output.stdout)?;
        let mut words = text.split_whitespace().map(str::parse::<f64>);
        let (Some(Ok(received)), Some(Ok(delivered))) = (words.next(), words.next()) else {
            return Err(format!("a member of a {kind} run said {text:?}").into());
        };
        seen.push(Seen { received, delivered });
    }
    let median = |field: fn(&Seen) -> f64| {
        let mut all: Vec<f64> = seen.iter().map(field).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Ok(Seen { received: median(|seen| seen.received), delivered: median(|seen| seen.delivered) })
}
