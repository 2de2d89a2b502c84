//! Cuts the end of a log: records that the group continued without.
//!
//! Nothing is overwritten. A batch says that all records from a sequence onwards are void, and the
//! next records reuse those sequences. Before that, the records to be cut are set aside in a
//! separate file: the group never ordered them, but somebody may want to inspect them. They never
//! become part of the log again.
//!
//! Records in a snapshot could not be cut any more. Therefore, snapshots are taken only of records
//! that are durable at a majority, and a cut below a snapshot is refused.

use std::io;

use crate::batch::{Batch, cut_batch};
use crate::error::{At, CutError, ReadError, SYNC, WriteError};
use crate::format::BLOCK_BYTES;
use crate::layer::{FileLayer, LayerFile as _, read_whole};
use crate::log::Log;
use crate::mark::{BatchKind, SegmentKey};
use crate::record::{Record, Sequence, record_at};
use crate::scan::{find_batches, sound_records};
use crate::segment::SegmentHeader;

/// The prefix of the names of files with records that were set aside.
const NAME: &str = "aside-";

/// The size at which a batch of such a file is written.
const BATCH_BYTES: usize = 1 << 20;

impl<L: FileLayer> Log<L> {
    /// Sets aside the records from a sequence onwards, and cuts the log there. Returns the name of
    /// the file with these records, if there are any.
    pub fn cut(&mut self, next: Sequence) -> Result<Option<String>, CutError> {
        let (first, end) = (self.first(), self.end());
        if next < first || next > end {
            return Err(CutError::OutOfRange { first, end, wanted: next });
        }
        if let Some(snapshot) = self.snapshot().filter(|snapshot| snapshot.sequence > next) {
            return Err(CutError::BelowSnapshot { snapshot: snapshot.sequence, wanted: next });
        }
        if next == end {
            return Ok(None);
        }
        self.writable()?;
        let aside = self.set_aside(next)?;
        self.write(&mut cut_batch(next), BatchKind::Cut)?;
        self.index.cut(next);
        Ok(Some(aside))
    }

    /// Returns the names of the files with records that were set aside.
    pub fn asides(&self) -> Result<Vec<String>, ReadError> {
        let names = self.layer.list().map_err(|error| {
            At { path: self.layer.path(), file: ".", action: "list" }.read_error(error)
        })?;
        let mut names: Vec<String> =
            names.into_iter().filter(|name| name.starts_with(NAME)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Reads the intact records of a file of records that were set aside.
    pub fn read_aside(
        &self,
        name: &str,
        mut each: impl FnMut(Record<'_>),
    ) -> Result<(), ReadError> {
        let bytes = read_whole(&self.layer, name).map_err(|error| {
            At { path: self.layer.path(), file: name, action: "read" }.read_error(error)
        })?;
        let number = name.strip_prefix(NAME).and_then(|rest| rest.split('-').next()?.parse().ok());
        let key = SegmentKey { log: self.metadata.content.log, number: number.unwrap_or(0) };
        for found in find_batches(&bytes, BLOCK_BYTES, key).batches {
            let mark = found.mark;
            let batch = &bytes[mark.start as usize..mark.end() as usize];
            for record in sound_records(batch, mark, key) {
                each(record_at(batch, record, mark.view));
            }
        }
        Ok(())
    }

    fn set_aside(&mut self, from: Sequence) -> Result<String, CutError> {
        let (name, mut file) = {
            let created = self.create_aside(from);
            self.done(created)?
        };
        let key = SegmentKey { log: self.metadata.content.log, number: from.0 };
        let incarnation = self.incarnation();
        let at = |action| At { path: self.layer.path(), file: &name, action };
        let failed = |action| move |error| at(action).write_error(error);
        let header = SegmentHeader { key, incarnation, first: from }.encode();
        let mut written = file.write_at(&header, 0).map_err(failed("write"));
        let mut offset = header.len() as u64;
        let mut batch = Batch::new();
        let mut records = self.records(from)?;
        loop {
            let is_last = records.position() == self.end();
            match records.read_next() {
                // Damaged records cannot be set aside.
                None | Some(Err(ReadError::Damaged { .. })) => {}
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(record)) => {
                    if batch.push_repair(&record).is_err() {
                        break;
                    }
                }
            }
            if batch.disk_bytes() >= BATCH_BYTES || (is_last && !batch.is_empty()) {
                let (mark, bytes) = batch.seal(BatchKind::Repair, key, incarnation, offset);
                written = written.and(file.write_at(bytes, offset).map_err(failed("write")));
                offset = mark.end();
                batch.clear();
            }
            if is_last {
                break;
            }
        }
        let written = written
            .and_then(|()| file.sync().map_err(failed(SYNC)))
            .and_then(|()| self.layer.sync_folder().map_err(failed(SYNC)));
        self.done(written)?;
        Ok(name)
    }

    /// Creates a file under an unused name.
    fn create_aside(&self, from: Sequence) -> Result<(String, L::File), WriteError> {
        let mut number = 0;
        loop {
            let name = format!("{NAME}{from:0>20}-{}-{number}", self.incarnation());
            match self.layer.create(&name) {
                Ok(file) => return Ok((name, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => {
                    let at = At { path: self.layer.path(), file: &name, action: "create" };
                    return Err(at.write_error(error));
                }
            }
        }
    }
}
