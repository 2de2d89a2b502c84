//! The rounds of `bench durable`.

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::durable::command::DurableArguments;
use crate::durable::plain::PlainWriters;
use crate::durable::processes::Processes;
use crate::durable::report::{Case, DurableReport};
use crate::error::BenchError;
use crate::machine::machine;
use crate::progress::StepsBar;
use crate::spread::Spread;
use tramontane_local::interrupt::Interrupts;

/// Runs `bench durable`.
///
/// # Errors
/// Fails with a [`BenchError`], in particular with [`BenchError::Broken`] if members disagree or
/// have lost durable messages.
pub(crate) fn run(
    arguments: &DurableArguments,
    interrupts: &Interrupts,
) -> Result<DurableReport, BenchError> {
    let disk = arguments.folder.clone().unwrap_or_else(std::env::temp_dir);
    let count = arguments.nodes.len() * arguments.bytes.len();
    let progress = StepsBar::new(count as u64 * (arguments.rounds + 1));
    let mut cases = Vec::new();
    for nodes in &arguments.nodes {
        for bytes in &arguments.bytes {
            progress.set_message(format!("{nodes} members, {bytes} bytes"));
            cases.push(case(arguments, *nodes, *bytes, &disk, &progress, interrupts)?);
        }
    }
    drop(progress);
    Ok(DurableReport { machine: machine(), folder: disk, rounds: arguments.rounds, cases })
}

pub(crate) fn folder_in(place: &Path) -> Result<TempDir, BenchError> {
    let made = tempfile::Builder::new().prefix("tramontane-durable-").tempdir_in(place);
    made.map_err(|source| BenchError::Disk { path: place.to_owned(), source })
}

fn case(
    arguments: &DurableArguments,
    nodes: u16,
    bytes: u32,
    disk: &Path,
    progress: &StepsBar,
    interrupts: &Interrupts,
) -> Result<Case, BenchError> {
    let (memory, disk) = (folder_in(Path::new("/dev/shm"))?, folder_in(disk)?);
    let parts = arguments.rounds * u64::from(nodes) * u64::from(bytes);
    // The number of messages per member and round.
    let messages = (arguments.mib << 20).div_ceil(parts);
    let round_messages = messages * u64::from(nodes);
    let round_bytes = round_messages * u64::from(bytes);
    let disk_error = |source| BenchError::Disk { path: disk.path().to_owned(), source };
    let mut writers = PlainWriters::create(disk.path(), nodes).map_err(disk_error)?;
    let mut members = Processes::start(nodes, bytes, memory.path(), disk.path(), interrupts)?;
    let (mut logged, mut plain, mut shares, mut syncs_per_s) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 1..=arguments.rounds {
        let (took, syncs) = members.send(messages, round * round_messages)?;
        let plain_took = writers.write(round_bytes, syncs).map_err(disk_error)?;
        logged.push(megabytes_per_s(round_bytes, took));
        plain.push(megabytes_per_s(round_bytes, plain_took));
        shares.push(plain_took.as_secs_f64() / took.as_secs_f64());
        syncs_per_s.push(syncs as f64 / took.as_secs_f64());
        progress.inc(1);
    }
    let before = members.delivered()?;
    members.kill()?;
    let restart = members.restart()?;
    let after = members.delivered()?;
    if after != before || before.count != arguments.rounds * round_messages {
        return Err(BenchError::Broken(format!(
            "the members had {before:?} delivered and durable before they were killed, but {after:?} after \
             the restart"
        )));
    }
    progress.inc(1);
    Ok(Case {
        nodes,
        message_bytes: bytes,
        log_mib: (before.count * u64::from(bytes)) >> 20,
        logged_mb_per_s: Spread::of(&logged),
        plain_mb_per_s: Spread::of(&plain),
        of_plain: Spread::of(&shares),
        syncs_per_s: Spread::of(&syncs_per_s),
        restart_s: restart.as_secs_f64(),
        messages: before.count,
        digest: format!("{:016x}", before.digest),
    })
}

/// Returns the rate of each log, or of each writer.
fn megabytes_per_s(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / 1e6 / took.as_secs_f64()
}
