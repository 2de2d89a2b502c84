//! The local log, and the copies of peers' logs that a candidate reads into the same region.
//!
//! A log is a prefix of the log of one leader, whose timestamp is its *stamp*. So two logs compare
//! like pairs of numbers: the log with the higher stamp or, if the stamps are equal, the longer log
//! contains everything that can have been decided (see `campaign`).
//!
//! # Invariants
//! - Delivered, decided and tail: each is at most the next.
//! - An entry below the tail changes only after a lower tail, at or below that entry, has been
//!   stored.
//!
//! Requirements: TRM-3, TRM-4.

use super::entry::{self, Entry};
use super::shape::{Shape, log_control};
use super::timestamp::Timestamp;
use crate::fabric::{Area, Region};
use crate::ids::Rank;
use crate::layout::CACHE_LINE;
use crate::memory::{OutOfRow, RowWriter};

/// The region of a replica that holds its log.
pub const LOG: Region = Region(1);

/// Returns the area at an offset in the region of logs.
pub(super) const fn log_area(offset: usize) -> Area {
    Area { region: LOG, offset }
}

/// The control line of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) stamp: Timestamp,
    pub(super) tail: u64,
    pub(super) decided: u64,
}

/// The local log.
#[derive(Clone, Copy)]
pub(super) struct Log<'m> {
    memory: RowWriter<'m>,
    shape: Shape,
}

impl<'m> Log<'m> {
    pub(super) const fn new(memory: RowWriter<'m>, shape: Shape) -> Self {
        Self { memory, shape }
    }

    pub(super) const fn memory(&self) -> RowWriter<'m> {
        self.memory
    }

    pub(super) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the control line.
    pub(super) fn control(&self) -> Result<Control, OutOfRow> {
        self.control_at(0)
    }

    /// Returns the control line in the copy of a peer's log.
    pub(super) fn copied_control(&self, peer: Rank) -> Result<Control, OutOfRow> {
        self.control_at(self.shape.copy_at(peer))
    }

    fn control_at(&self, base: usize) -> Result<Control, OutOfRow> {
        let row = self.memory.reader();
        let get = |offset: usize| -> Result<u64, OutOfRow> {
            Ok(row.cell(base.saturating_add(offset))?.load())
        };
        // The stamp is read first: a leader cuts the log before it stamps it, so the tail that is
        // read after a stamp belongs to that stamp's leader or to a later one. The decided count is
        // read before the tail, which a leader stores first.
        let stamp = Timestamp::from_cell(get(log_control::STAMP)?);
        let decided = get(log_control::DECIDED)?;
        let tail = get(log_control::TAIL)?;
        Ok(Control { stamp, tail, decided })
    }

    pub(super) fn decided(&self) -> Result<u64, OutOfRow> {
        Ok(self.memory.reader().cell(log_control::DECIDED)?.load())
    }

    /// Returns the number of the last repair by the leader whose stamp the log has.
    pub(super) fn repair(&self) -> Result<u64, OutOfRow> {
        Ok(self.memory.reader().cell(log_control::REPAIR)?.load())
    }

    pub(super) fn set_decided(&self, decided: u64) -> Result<(), OutOfRow> {
        self.set(log_control::DECIDED, decided)
    }

    pub(super) fn set_tail(&self, tail: u64) -> Result<(), OutOfRow> {
        self.set(log_control::TAIL, tail)
    }

    pub(super) fn set_stamp(&self, stamp: Timestamp) -> Result<(), OutOfRow> {
        self.set(log_control::STAMP, stamp.cell())
    }

    fn set(&self, offset: usize, value: u64) -> Result<(), OutOfRow> {
        self.memory.cell(offset)?.publish(value);
        Ok(())
    }

    /// Publishes the timestamp of the leader that is about to receive the log.
    pub(super) fn set_promised(&self, promised: Timestamp) -> Result<(), OutOfRow> {
        self.set(log_control::PROMISED, promised.cell())
    }

    /// Returns the timestamp of the leader that had a peer's log when its control line was read.
    pub(super) fn copied_promised(&self, peer: Rank) -> Result<Timestamp, OutOfRow> {
        let cell = self.shape.copy_at(peer).saturating_add(log_control::PROMISED);
        Ok(Timestamp::from_cell(self.memory.reader().cell(cell)?.load()))
    }

    /// Records that the owner has restored a snapshot: the entries that other replicas need begin
    /// there.
    pub(super) fn set_begins(&self, begins: u64) -> Result<(), OutOfRow> {
        self.set(log_control::BEGINS, begins)
    }

    pub(super) fn begins(&self) -> Result<u64, OutOfRow> {
        Ok(self.memory.reader().cell(log_control::BEGINS)?.load())
    }

    /// Returns the log index of the last snapshot that a peer had restored when its control line
    /// was read.
    pub(super) fn copied_begins(&self, peer: Rank) -> Result<u64, OutOfRow> {
        let cell = self.shape.copy_at(peer).saturating_add(log_control::BEGINS);
        Ok(self.memory.reader().cell(cell)?.load())
    }

    /// Returns the entry at a log index, if there is one.
    pub(super) fn load(&self, place: u64) -> Result<Option<Entry>, OutOfRow> {
        entry::load(self.memory.reader(), &self.shape, 0, place)
    }

    /// Returns the entry at a log index in the copy of a peer's log.
    pub(super) fn load_copied(&self, peer: Rank, place: u64) -> Result<Option<Entry>, OutOfRow> {
        entry::load(self.memory.reader(), &self.shape, self.shape.copy_at(peer), place)
    }

    /// Stores an entry's header.
    pub(super) fn store(&self, place: u64, entry: &Entry) -> Result<(), OutOfRow> {
        entry::store(self.memory, &self.shape, place, entry)
    }

    /// Empties the slot of a log index, before its payload is replaced.
    pub(super) fn clear(&self, place: u64) -> Result<(), OutOfRow> {
        entry::clear(self.memory, &self.shape, place)
    }

    /// Returns the log index, from `from` to `to`, at which the headers of a peer's log begin to
    /// differ from the local headers.
    pub(super) fn differs_from(&self, peer: Rank, from: u64, to: u64) -> Result<u64, OutOfRow> {
        let mut place = from;
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= to {
                break;
            }
            let copied = self.load_copied(peer, place)?;
            if copied.is_none() || copied != self.load(place)? {
                break;
            }
            place = place.saturating_add(1);
        }
        Ok(place)
    }

    /// Copies the payload of an entry into the given buffer.
    pub(super) fn payload<'p>(
        &self,
        place: u64,
        length: u32,
        into: &'p mut [u8],
    ) -> Result<&'p [u8], OutOfRow> {
        let length = crate::ids::index_from_u32(length);
        let into = into.get_mut(..length).ok_or(OutOfRow)?;
        self.memory.reader().read(self.shape.payload(place), into)?;
        Ok(into)
    }
}

const _: () = assert!(log_control::BEGINS + 8 <= CACHE_LINE);
