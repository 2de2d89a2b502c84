//! Opens a log, which may have been written by a previous process or is created here.
//!
//! # Invariants
//! - All records served after a start are durable. The last batch is rewritten and synced first,
//!   because a sync by the previous process may have failed, after which the system's memory has
//!   bytes that the disk lacks.
//! - The incarnation is increased durably before anything is written.

use std::io;

use crate::damage::Damage;
use crate::error::{At, OpenLogError, SYNC};
use crate::examine::{ExamineError, Examined, FoundTail, Mend, examine};
use crate::format::{BLOCK_BYTES, FORMAT_VERSION};
use crate::layer::{FileLayer, LayerFile as _};
use crate::log::{Log, Options, Tail};
use crate::mark::SegmentKey;
use crate::metadata::{self, FoundMetadata, Identity, Metadata, StoredMetadata};
use crate::noted::{Fit, Noted};
use crate::record::Sequence;
use crate::segment::{SegmentHeader, is_spare, segment_name, segment_number};

/// The condition in which a log was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether there was no log, so that one was created. A member with a new log knows nothing: it
    /// joins as a new member, and counts in no majority before it has received the group's state.
    pub is_new: bool,
    /// Whether an incomplete last batch was dropped. As far as the log and its note show, that
    /// batch was never reported as durable.
    pub is_torn: bool,
    /// Whether the log matches its owner's note.
    pub fit: Fit,
    /// The damage found. Everything except damaged records has been repaired as far as possible.
    pub damage: Vec<Damage>,
    /// The number of batches that have been read.
    pub batches: u64,
    /// The total size of these batches, in bytes.
    pub batch_bytes: u64,
}

impl<L: FileLayer> Log<L> {
    /// Opens the log of a subgroup for writing, or creates one.
    pub fn open(
        layer: L,
        identity: &Identity,
        options: Options,
    ) -> Result<(Self, Recovery), OpenLogError> {
        let lock = take_lock(&layer)?;
        let (metadata, is_new, damage) = match find(&layer)? {
            FoundMetadata::Nothing => {
                let content = new_content(identity.clone()).map_err(|error| {
                    At { path: layer.path(), file: ".", action: "draw a number for" }
                        .open_error(error)
                })?;
                (Metadata::create(&layer, content)?, true, Vec::new())
            }
            FoundMetadata::Metadata { content, .. } if content.identity != *identity => {
                return Err(OpenLogError::OtherGroup {
                    path: layer.path().to_owned(),
                    found: content.identity.to_string(),
                    wanted: identity.to_string(),
                });
            }
            FoundMetadata::Metadata { content, state, damage } => {
                (Metadata::open(&layer, content, state)?, false, damage)
            }
        };
        let (mut log, recovery, remaining) =
            Self::take_over(layer, metadata, options, Some(lock), damage)?;
        log.begin_incarnation()?;
        log.make_durable(remaining)?;
        Ok((log, Recovery { is_new, ..recovery }))
    }

    /// Opens a log read-only, no matter who owns it. Nothing in the folder changes.
    pub fn open_to_read(layer: L, noted: Option<Noted>) -> Result<(Self, Recovery), OpenLogError> {
        let path = layer.path().to_owned();
        let names = layer.list();
        let names = names
            .map_err(|error| At { path: &path, file: ".", action: "list" }.open_error(error))?;
        if !names.iter().any(|name| metadata::COPIES.contains(&name.as_str())) {
            return Err(OpenLogError::NoLog { path });
        }
        let lock = match layer.lock() {
            Ok(lock) => Some(lock),
            // A copied log may have no lock file. In that case, no process is writing to it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(lock_error(&layer, error)),
        };
        match find(&layer)? {
            FoundMetadata::Nothing => Err(OpenLogError::NoLog { path }),
            FoundMetadata::Metadata { content, state, damage } => {
                let metadata = Metadata::to_read(content, state);
                let options = Options { noted, ..Options::default() };
                let (log, recovery, _) = Self::take_over(layer, metadata, options, lock, damage)?;
                Ok((log, recovery))
            }
        }
    }

    /// Reads the whole log, and creates the open log from what was found.
    fn take_over(
        layer: L,
        metadata: Metadata<L>,
        options: Options,
        lock: Option<L::Lock>,
        mut damage: Vec<Damage>,
    ) -> Result<(Self, Recovery, Remaining), OpenLogError> {
        let durable = options.noted.map(|noted| noted.durable(&metadata.content));
        let durable = durable.unwrap_or(Sequence::ZERO);
        let found = examine(&layer, &metadata.content, durable).map_err(|error| match error {
            ExamineError::Io { file, source } => {
                At { path: layer.path(), file: &file, action: "read" }.open_error(source)
            }
            ExamineError::Newer { file, found } => {
                let path = layer.path().to_owned();
                OpenLogError::NewerFormat { path, file, found, known: FORMAT_VERSION }
            }
        })?;
        let Examined { index, segments, spares, snapshot, next_segment, .. } = found;
        damage.extend(found.damage);
        let fit = options.noted.map(|noted| noted.fit(&metadata.content, index.end()));
        let fit = fit.unwrap_or_default();
        let recovery = Recovery {
            is_new: false,
            is_torn: found.is_torn,
            fit,
            damage,
            batches: found.batches,
            batch_bytes: found.batch_bytes,
        };
        let log = Self {
            layer,
            metadata,
            options,
            index,
            segments,
            spares,
            next_segment,
            tail: None,
            snapshot,
            has_failed: false,
            _lock: lock,
        };
        let rest = Remaining { tail: found.tail, mends: found.mends, leftovers: found.leftovers };
        Ok((log, recovery, rest))
    }

    /// Durably records that a new process is now the writer.
    fn begin_incarnation(&mut self) -> Result<(), OpenLogError> {
        self.metadata.content.incarnation += 1;
        // A snapshot installed just before a crash may be beyond the end of the log.
        if let Some(snapshot) = self.snapshot.filter(|found| found.sequence > self.index.end()) {
            self.index.let_go(snapshot.sequence);
            self.metadata.content.base = snapshot.sequence;
            self.metadata.content.first_segment = self.next_segment;
        }
        self.metadata.write().map_err(|(action, file, error)| {
            At { path: self.layer.path(), file, action }.open_error(error)
        })
    }

    /// Makes served records durable, repairs damage that can be repaired from the log itself, and
    /// removes leftovers.
    fn make_durable(&mut self, found: Remaining) -> Result<(), OpenLogError> {
        self.mend(&found.mends).map_err(|(action, file, error)| {
            At { path: self.layer.path(), file: &file, action }.open_error(error)
        })?;
        let first = self.metadata.content.first_segment;
        let old = self.segments.keys().copied().take_while(|old| *old < first);
        let old: Vec<String> = old.map(segment_name).collect();
        self.segments = self.segments.split_off(&first);
        for name in found.leftovers.iter().chain(&old) {
            self.layer.remove(name).map_err(|error| {
                At { path: self.layer.path(), file: name, action: "remove" }.open_error(error)
            })?;
        }
        self.keep_spares()?;
        if let Some(tail) = found.tail.filter(|tail| tail.number >= first) {
            self.tail = Some(self.take_over_tail(tail)?);
        }
        self.layer.sync_folder().map_err(|error| {
            At { path: self.layer.path(), file: ".", action: SYNC }.open_error(error)
        })
    }

    /// Keeps the wanted number of spares, with the right size.
    fn keep_spares(&mut self) -> Result<(), OpenLogError> {
        for name in std::mem::take(&mut self.spares) {
            let at = |action| At { path: self.layer.path(), file: &name, action };
            let file = self.layer.open(&name).map_err(|error| at("open").open_error(error))?;
            let length = file.length().map_err(|error| at("read").open_error(error))?;
            if length == self.options.segment_bytes && self.spares.len() < self.options.spares_max {
                self.spares.push(name);
            } else {
                self.layer.remove(&name).map_err(|error| at("remove").open_error(error))?;
            }
        }
        Ok(())
    }

    /// Rewrites the header and the last batch of the last segment, and syncs both.
    fn take_over_tail(&self, found: FoundTail) -> Result<Tail<L::File>, OpenLogError> {
        let name = segment_name(found.number);
        let at = |action| At { path: self.layer.path(), file: &name, action };
        let mut file = self.layer.open(&name).map_err(|error| at("open").open_error(error))?;
        let key = SegmentKey { log: self.metadata.content.log, number: found.number };
        let mut header = vec![0; BLOCK_BYTES];
        file.read_at(&mut header, 0).map_err(|error| at("read").open_error(error))?;
        debug_assert!(matches!(
            SegmentHeader::read(&header, key),
            crate::segment::ReadHeader::Sound(_)
        ));
        file.write_at(&header, 0).map_err(|error| at("write").open_error(error))?;
        if let Some(last) = &found.last {
            let written = file.write_at(&last.bytes, last.offset);
            written.map_err(|error| at("write").open_error(error))?;
        }
        file.sync().map_err(|error| at(SYNC).open_error(error))?;
        Ok(Tail { file, number: found.number, used: found.used })
    }

    /// Rewrites damaged bytes whose correct content is known from the log. The error names the step
    /// and the segment that failed.
    pub(crate) fn mend(&self, mends: &[Mend]) -> Result<(), (&'static str, String, io::Error)> {
        for mend in mends {
            let name = segment_name(mend.segment);
            let failed = |action| {
                let name = name.clone();
                move |error| (action, name, error)
            };
            let mut file = self.layer.open(&name).map_err(failed("open"))?;
            file.write_at(&mend.bytes, mend.offset).map_err(failed("write"))?;
            file.sync().map_err(failed(SYNC))?;
        }
        Ok(())
    }
}

/// The steps that remain before an existing log may be written to.
struct Remaining {
    tail: Option<FoundTail>,
    mends: Vec<Mend>,
    leftovers: Vec<String>,
}

fn take_lock<L: FileLayer>(layer: &L) -> Result<L::Lock, OpenLogError> {
    layer.lock().map_err(|error| lock_error(layer, error))
}

fn lock_error<L: FileLayer>(layer: &L, error: io::Error) -> OpenLogError {
    match error.kind() {
        io::ErrorKind::WouldBlock => OpenLogError::InUse { path: layer.path().to_owned() },
        _ => At { path: layer.path(), file: "lock", action: "lock" }.open_error(error),
    }
}

/// Searches a folder for the metadata.
fn find<L: FileLayer>(layer: &L) -> Result<FoundMetadata, OpenLogError> {
    let names = layer.list();
    let names = names
        .map_err(|error| At { path: layer.path(), file: ".", action: "list" }.open_error(error))?;
    let has_segments = names.iter().any(|name| segment_number(name).is_some() || is_spare(name));
    metadata::find(layer, has_segments)
}

/// Returns the metadata of an empty log.
fn new_content(identity: Identity) -> io::Result<StoredMetadata> {
    let mut number = [0; 8];
    rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
    Ok(StoredMetadata {
        log: u64::from_le_bytes(number),
        identity,
        incarnation: 0,
        base: Sequence::ZERO,
        first_segment: 1,
        values: std::collections::BTreeMap::new(),
    })
}
