//! What logs take on a disk, in turn with as many plain writers that sync as often.
//!
//! A commit is [`BATCH`] messages, for both. The log lets its beginning go, as it does beside
//! snapshots, and writes over its segments; a plain writer begins its file anew. Every figure is a
//! median over the rounds, in which both take turns.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use tramontane_core::ids::{NodeId, Place, ViewId};
use tramontane_local::table::Table;
use tramontane_log::{Batch, Identity, LetGoError, Log, Options, Record, Sequence, SystemFolder};

use crate::exit::{Failure, Status};
use crate::output::print_result;

/// Bytes of a message.
const SIZES: [usize; 3] = [100, 1000, 10_000];

/// Messages of a commit.
const BATCH: usize = 64;

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(100);

/// A log lets its beginning go, and a plain writer begins anew, once it has so many bytes.
const KEPT_BYTES: u64 = 128 << 20;

/// One line of the report.
#[derive(Serialize)]
struct Case {
    message_bytes: usize,
    logs: u16,
    /// Bytes of messages a second, of all together.
    log_bytes_per_s: f64,
    plain_bytes_per_s: f64,
    log_syncs_per_s: f64,
    plain_syncs_per_s: f64,
    /// What the log takes of what plain writers take.
    of_plain: f64,
}

#[derive(Serialize)]
struct Report {
    messages_per_commit: usize,
    cases: Vec<Case>,
}

/// Measures in a folder of its own below that one.
pub(super) fn run(folder: &Path, logs: u16, json: bool) -> Result<(), Failure> {
    let scratch = tempfile::Builder::new().prefix("measure-").tempdir_in(folder);
    let scratch = scratch.map_err(|error| {
        let what = format_args!("cannot write to {}: {error}", folder.display());
        Failure::new(Status::Resources, what, "give a folder on the disk that is to be measured")
    })?;
    let mut cases = Vec::new();
    for size in SIZES {
        cases.push(measure(scratch.path(), logs, size)?);
    }
    let report = Report { messages_per_commit: BATCH, cases };
    print_result(json, &report, text)
}

fn text(report: &Report) -> String {
    let mut table = Table::new("bytes  logs  log MB/s  plain MB/s  log syncs/s  of plain", &[]);
    for case in &report.cases {
        table.row([
            case.message_bytes.to_string(),
            case.logs.to_string(),
            format!("{:.1}", case.log_bytes_per_s / 1e6),
            format!("{:.1}", case.plain_bytes_per_s / 1e6),
            format!("{:.0}", case.log_syncs_per_s),
            format!("{:.0} %", case.of_plain * 100.0),
        ]);
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{BATCH} messages a commit, each commit synced\n\n{table}");
    text
}

/// What takes batches of messages.
trait Writer: Send {
    fn commit(&mut self, messages: &[Vec<u8>]) -> Result<(), Failure>;
}

fn measure(scratch: &Path, logs: u16, size: usize) -> Result<Case, Failure> {
    let messages: Vec<Vec<u8>> = (0..BATCH).map(|at| vec![at as u8; size]).collect();
    let (mut own, mut plain) = (Vec::new(), Vec::new());
    for number in 0..logs {
        own.push(LogWriter::new(&scratch.join(format!("log-{size}-{number}")))?);
        plain.push(PlainWriter::new(&scratch.join(format!("plain-{size}-{number}")))?);
    }
    let (mut log_rates, mut plain_rates, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=ROUNDS {
        let plain_rate = together(&mut plain, &messages)?;
        let log_rate = together(&mut own, &messages)?;
        if round > 0 {
            plain_rates.push(plain_rate);
            log_rates.push(log_rate);
            ratios.push(log_rate / plain_rate);
        }
    }
    let bytes = (BATCH * size) as f64;
    let (log_rate, plain_rate) = (median(log_rates), median(plain_rates));
    Ok(Case {
        message_bytes: size,
        logs,
        log_bytes_per_s: log_rate * bytes,
        plain_bytes_per_s: plain_rate * bytes,
        log_syncs_per_s: log_rate,
        plain_syncs_per_s: plain_rate,
        of_plain: median(ratios),
    })
}

/// Commits a second of all writers, each in a thread.
fn together<W: Writer>(writers: &mut [W], messages: &[Vec<u8>]) -> Result<f64, Failure> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            writers.iter_mut().map(|writer| scope.spawn(move || rate(writer, messages))).collect();
        let rates = threads.into_iter().map(|thread| {
            let panicked = |_| Failure::other("a writer panicked", "please report this");
            thread.join().map_err(panicked)?
        });
        rates.sum()
    })
}

fn rate(writer: &mut impl Writer, messages: &[Vec<u8>]) -> Result<f64, Failure> {
    let (began, mut commits) = (Instant::now(), 0.0);
    while began.elapsed() < ROUND {
        writer.commit(messages)?;
        commits += 1.0;
    }
    Ok(commits / began.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

struct LogWriter {
    log: Log<SystemFolder>,
    batch: Batch,
    kept: u64,
}

impl LogWriter {
    fn new(folder: &Path) -> Result<Self, Failure> {
        let layer = SystemFolder::create(folder);
        let layer = layer.map_err(|error| Failure::system("cannot make a folder", &error))?;
        let identity = Identity { group: "measure".into(), subgroup: "measure".into() };
        let (log, _) = Log::open(layer, &identity, Options::default())?;
        Ok(Self { log, batch: Batch::new(), kept: 0 })
    }

    fn let_go(&mut self) -> Result<(), Failure> {
        let end = self.log.end();
        let written = self.log.write_snapshot(end, ViewId(1))?.finish()?;
        self.log.install_snapshot(written)?;
        self.kept = 0;
        match self.log.let_go_below(end) {
            Err(LetGoError::Write(error)) => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Writer for LogWriter {
    fn commit(&mut self, messages: &[Vec<u8>]) -> Result<(), Failure> {
        for (sequence, bytes) in (self.log.end().0..).zip(messages) {
            let (view, place, sender) = (ViewId(1), Place(sequence), NodeId(0));
            let (sequence, is_large) = (Sequence(sequence), false);
            let record = Record { sequence, view, place, sender, is_large, bytes };
            let pushed = self.batch.push(&record);
            pushed.map_err(|error| Failure::other(error, "please report this"))?;
        }
        self.kept += self.batch.disk_bytes() as u64;
        self.log.commit(&mut self.batch)?;
        if self.kept > KEPT_BYTES { self.let_go() } else { Ok(()) }
    }
}

struct PlainWriter {
    path: std::path::PathBuf,
    file: File,
    at: u64,
    bytes: Vec<u8>,
}

impl PlainWriter {
    fn new(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path);
        let file = file.map_err(|error| Failure::system("cannot make a file", &error))?;
        Ok(Self { path: path.to_owned(), file, at: 0, bytes: Vec::new() })
    }

    fn write(&mut self) -> io::Result<()> {
        if self.at > KEPT_BYTES {
            self.file = File::create(&self.path)?;
            self.at = 0;
        }
        self.file.write_all_at(&self.bytes, self.at)?;
        self.at += self.bytes.len() as u64;
        self.file.sync_data()
    }
}

impl Writer for PlainWriter {
    fn commit(&mut self, messages: &[Vec<u8>]) -> Result<(), Failure> {
        self.bytes.clear();
        for message in messages {
            self.bytes.extend_from_slice(message);
        }
        self.write().map_err(|error| Failure::system("cannot write a file", &error))
    }
}
