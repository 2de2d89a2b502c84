//! Appends with group commit: so many records become durable with one call, and the next follow.
//! Each candidate writes to a folder of its own on the disk that TMPDIR names.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tramontane_core::ids::{Place, SenderRank, ViewId};
use tramontane_log::{Batch, Identity, Log, Options, Record, Sequence, SystemFolder};

/// Disk space of a candidate that uses its files again.
const KEPT_BYTES: u64 = 256 << 20;

/// Makes a batch of messages durable.
trait Candidate {
    fn commit(&mut self, messages: &[Vec<u8>]);
}

/// A file that is appended to and synced, and nothing else: what the disk takes.
struct Plain {
    path: std::path::PathBuf,
    file: File,
    at: u64,
    /// Written over once it is full, or else begun anew.
    is_recycled: bool,
}

impl Plain {
    fn new(folder: &Path, is_recycled: bool) -> Self {
        let path = folder.join("plain");
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(&path);
        let file = file.expect("a file");
        if is_recycled {
            let zeros = vec![0; 1 << 20];
            for at in (0..KEPT_BYTES).step_by(zeros.len()) {
                file.write_all_at(&zeros, at).expect("space");
            }
            file.sync_all().expect("a disk");
        }
        Self { path, file, at: 0, is_recycled }
    }
}

impl Candidate for Plain {
    fn commit(&mut self, messages: &[Vec<u8>]) {
        let bytes = messages.concat();
        if self.at + bytes.len() as u64 > KEPT_BYTES {
            self.at = 0;
            if !self.is_recycled {
                self.file = File::create(&self.path).expect("a file");
            }
        }
        self.file.write_all_at(&bytes, self.at).expect("space");
        self.file.sync_data().expect("a disk");
        self.at += bytes.len() as u64;
    }
}

struct Own {
    log: Log<SystemFolder>,
    batch: Batch,
    kept: u64,
}

impl Own {
    fn new(folder: &Path, spares_max: usize) -> Self {
        let layer = SystemFolder::create(folder).expect("a folder");
        let identity = Identity { group: "bench".into(), subgroup: "bench".into() };
        let options = Options { spares_max, ..Options::default() };
        let (log, _) = Log::open(layer, &identity, options).expect("a log");
        Self { log, batch: Batch::new(), kept: 0 }
    }

    /// A snapshot stands for what there is, which is let go.
    fn let_go(&mut self) {
        let end = self.log.end();
        let writer = self.log.write_snapshot(end, ViewId(1)).expect("space");
        let written = writer.finish().expect("a disk");
        self.log.install_snapshot(written).expect("a disk");
        self.log.let_go_below(end).expect("a disk");
        self.kept = 0;
    }
}

impl Candidate for Own {
    fn commit(&mut self, messages: &[Vec<u8>]) {
        for (sequence, bytes) in (self.log.end().0..).zip(messages) {
            let (view, place, sender) = (ViewId(1), Place(sequence), SenderRank(0));
            let (sequence, is_large) = (Sequence(sequence), false);
            let record = Record { sequence, view, place, sender, is_large, bytes };
            self.batch.push(&record).expect("in order");
        }
        self.kept += self.batch.disk_bytes() as u64;
        self.log.commit(&mut self.batch).expect("a disk");
        if self.kept > KEPT_BYTES / 2 {
            self.let_go();
        }
    }
}

struct Redb {
    store: redb::Database,
    next: u64,
    kept: u64,
}

const TABLE: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("log");

impl Candidate for Redb {
    fn commit(&mut self, messages: &[Vec<u8>]) {
        let write = self.store.begin_write().expect("one writer");
        {
            let mut table = write.open_table(TABLE).expect("a table");
            for message in messages {
                table.insert(self.next, message.as_slice()).expect("space");
                self.next += 1;
                self.kept += message.len() as u64;
                if self.kept > KEPT_BYTES {
                    table.pop_first().expect("a disk");
                    self.kept -= message.len() as u64;
                }
            }
        }
        write.commit().expect("a disk");
    }
}

struct Fjall {
    store: fjall::Database,
    keyspace: fjall::Keyspace,
    next: u64,
}

impl Candidate for Fjall {
    fn commit(&mut self, messages: &[Vec<u8>]) {
        let mut batch = self.store.batch();
        for message in messages {
            batch.insert(&self.keyspace, self.next.to_be_bytes(), message.as_slice());
            self.next += 1;
        }
        batch.commit().expect("space");
        self.store.persist(fjall::PersistMode::SyncData).expect("a disk");
    }
}

struct RaftEngine {
    engine: raft_engine::Engine,
    next: u64,
}

impl Candidate for RaftEngine {
    fn commit(&mut self, messages: &[Vec<u8>]) {
        let mut batch = raft_engine::LogBatch::with_capacity(messages.len());
        for message in messages {
            // Its entries are protocol buffers: as keys and values, messages stay as they are.
            batch.put(1, self.next.to_be_bytes().to_vec(), message.clone()).expect("a key");
            self.next += 1;
        }
        self.engine.write(&mut batch, true).expect("a disk");
        // It keeps values in memory: only the last ones stay.
        let old = self.next.saturating_sub(4096);
        let mut batch = raft_engine::LogBatch::with_capacity(messages.len());
        for key in old.saturating_sub(messages.len() as u64)..old {
            batch.delete(1, key.to_be_bytes().to_vec());
        }
        self.engine.write(&mut batch, false).expect("a disk");
    }
}

struct OkayWal(okaywal::WriteAheadLog);

impl Candidate for OkayWal {
    fn commit(&mut self, messages: &[Vec<u8>]) {
        let mut entry = self.0.begin_entry().expect("a log");
        for message in messages {
            entry.write_chunk(message).expect("space");
        }
        entry.commit().expect("a disk");
    }
}

/// Lets everything go at its checkpoints.
#[derive(Debug)]
struct Forgets;

impl okaywal::LogManager for Forgets {
    fn recover(&mut self, _: &mut okaywal::Entry<'_>) -> std::io::Result<()> {
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _: okaywal::EntryId,
        _: &mut okaywal::SegmentReader,
        _: &okaywal::WriteAheadLog,
    ) -> std::io::Result<()> {
        Ok(())
    }
}

const NAMES: [&str; 8] = [
    "plain writer",
    "plain writer, written over",
    "tramontane-log",
    "tramontane-log, recycled",
    "redb",
    "fjall",
    "raft-engine",
    "okaywal",
];

fn candidate(name: &str, folder: &Path) -> Box<dyn Candidate> {
    match name {
        "plain writer" => Box::new(Plain::new(folder, false)),
        "plain writer, written over" => Box::new(Plain::new(folder, true)),
        "tramontane-log" => Box::new(Own::new(folder, 0)),
        "tramontane-log, recycled" => {
            let mut own = Own::new(folder, 4);
            // Until segments have been used once.
            let messages = vec![vec![0; 1 << 20]; 8];
            for _ in 0..40 {
                own.commit(&messages);
            }
            Box::new(own)
        }
        "redb" => {
            let store = redb::Database::create(folder.join("store")).expect("a store");
            Box::new(Redb { store, next: 0, kept: 0 })
        }
        "fjall" => {
            let store = fjall::Database::builder(folder).open().expect("a store");
            let keyspace = store.keyspace("log", fjall::KeyspaceCreateOptions::default);
            Box::new(Fjall { keyspace: keyspace.expect("a keyspace"), store, next: 0 })
        }
        "raft-engine" => {
            let dir = folder.to_str().expect("a path").to_owned();
            let config = raft_engine::Config { dir, ..raft_engine::Config::default() };
            let engine = raft_engine::Engine::open(config).expect("an engine");
            Box::new(RaftEngine { engine, next: 0 })
        }
        _ => Box::new(OkayWal(okaywal::WriteAheadLog::recover(folder, Forgets).expect("a log"))),
    }
}

fn appends(criterion: &mut Criterion) {
    for size in [100_usize, 1000, 10_000] {
        for records in [1_usize, 64] {
            let mut bench = criterion.benchmark_group(format!("{records} of {size} B"));
            bench.warm_up_time(Duration::from_millis(200));
            bench.measurement_time(Duration::from_millis(1000)).sample_size(20);
            bench.throughput(Throughput::Bytes((size * records) as u64));
            let messages = vec![vec![0x5a; size]; records];
            for name in NAMES {
                let folder = tempfile::tempdir().expect("a folder");
                let mut candidate = candidate(name, folder.path());
                bench.bench_function(BenchmarkId::from_parameter(name), |bench| {
                    bench.iter(|| candidate.commit(&messages));
                });
            }
            bench.finish();
        }
    }
}

criterion_group!(benches, appends);
criterion_main!(benches);
