//! The process of a replica: starts the replica, and waits until it has to end.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tramontane_runtime::shards::{Places, StartOptions, start};

use super::log::LoggingApplication;
use super::overlay_file::read_with_device;
use crate::log_file::{Rotation, SharedLogFile};
use tramontane_local::exit::Failure;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::{DeviceArguments, seconds};
use tramontane_local::output::{Output, print_notice};

/// Options of a replica.
#[derive(Args, Debug)]
pub(super) struct ReplicaOptions {
    /// Write deliveries to FILE instead of printing them
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Do not print deliveries
    #[arg(long, conflicts_with = "log")]
    quiet: bool,
    /// For a durable overlay: save this replica's log in a folder of its own in DIR
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Take a snapshot each time the log in DIR has grown by this many MB
    #[arg(long, value_name = "MB", default_value = "64", requires = "data",
          value_parser = clap::value_parser!(u32).range(1..))]
    data_keep_mb: u32,
    /// Time limit for the group to form, or to readmit this replica, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "3600", allow_negative_numbers = true,
          value_parser = seconds)]
    join_timeout: Duration,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Interval between checks for signals and of the replica's state.
const TICK: Duration = Duration::from_millis(20);

/// Time limit for writing the remaining deliveries at the end.
const DRAIN: Duration = Duration::from_secs(1);

/// Starts a replica, and waits for its end.
pub(super) fn run(config: &Path, id: &str, arguments: &ReplicaOptions) -> Result<(), Failure> {
    let description = read_with_device(config, &arguments.device)?;
    let places = Places::new(&description, description.overlay()?);
    let replica = places.replica_named(id)?;
    raise_descriptor_limit();
    let interrupts = Interrupts::watch()?;
    let (failed, failures) = channel();
    let output = if arguments.log.is_none() && !arguments.quiet {
        Some(output(failed.clone())?)
    } else {
        None
    };
    let file = arguments.log.as_deref().map(SharedLogFile::open).transpose()?;
    let rotation = Rotation::watch(file.iter().cloned().collect())?;
    let application = LoggingApplication::new(places, file, output.clone(), failed);
    let mut options = StartOptions::default();
    options.time_limit = arguments.join_timeout;
    options.cancel = interrupts.flag();
    options.data = arguments.data.clone();
    options.data_keep_bytes = u64::from(arguments.data_keep_mb) << 20;
    options.told = Some(|missing| {
        let missing = missing.join(", ");
        print_notice(&format!("starting; waiting for {missing}; start each with its own command"));
    });
    let running = match start(&description, replica, options, application) {
        Ok(running) => running,
        Err(error) => {
            interrupts.check()?;
            return Err(error.into());
        }
    };
    tracing::info!(replica = id, "the replica is in its group");
    let ended = wait_for_end(&interrupts, &failures, &rotation, || running.stopped());
    running.close();
    if let Some(output) = output {
        output.drain(DRAIN);
    }
    ended
}

/// Lets this process open as many files as the system permits. The usual limit is lower, for
/// programs that call `select`, which this one does not.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this fails, the lower limit still suffices for a few clients.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn output(failed: Sender<io::Error>) -> Result<Output, Failure> {
    let failed = move |error| {
        // The main thread may have ended.
        let _ = failed.send(error);
    };
    Output::start(None, failed).map_err(|error| Failure::system("cannot start a thread", &error))
}

/// Waits for a signal, which is not a failure, or for the replica to end.
fn wait_for_end(
    interrupts: &Interrupts,
    failures: &Receiver<io::Error>,
    rotation: &Rotation,
    stopped: impl Fn() -> Option<tramontane_runtime::member::Stopped>,
) -> Result<(), Failure> {
    loop {
        if interrupts.is_asked() {
            return Ok(());
        }
        if let Some(stopped) = stopped() {
            return Err(stopped.into());
        }
        if let Ok(error) = failures.recv_timeout(TICK) {
            return Err(Failure::output(&error));
        }
        rotation.rotate();
    }
}
