//! Durable replicas: the log that a replica must save, and how it continues from its disk.
//!
//! A replica that has lost its memory counts in no quorum until the others have admitted it
//! (TRM-5), so a group whose majority crashes is lost. A *durable* replica saves its log, and
//! continues from there as the same replica, with a higher incarnation. The core writes no file:
//! after a step the host takes what is unsaved, and says later that it is on the disk.
//!
//! # Rules
//! - A promise is saved before the log is granted, and before a candidate acts on its own promise.
//!   So no crash makes a replica grant its log to an earlier leader.
//! - A leader counts an entry at a follower once the follower has saved it with everything below
//!   it, under that leader's stamp. The follower reports what it has saved instead of what it has
//!   seen (see `acknowledge`). The leader's own log counts in the same way.
//! - A replica delivers an entry only once it has saved it under the current leader's stamp. So the
//!   application is never ahead of the disk, and a recovering replica lacks only entries that any
//!   follower may lack.
//! - Nothing is saved while a new leader repairs the log or a candidate copies entries into it,
//!   before the new stamp. Until then the disk has the earlier log with the earlier stamp, and each
//!   leader so far has counted only what is in it. With the new stamp the whole log is saved again.
//!
//! So a crash has the effect of a pause during which the writes to the log did not land, and
//! `campaign` explains why such a pause loses nothing.
//!
//! Requirements: TRM-3, TRM-5.

use super::common::Common;
use super::link::Memory;
use super::log::Log;
use super::progress::{Halt, ShardApplication};
use super::replica::Replica;
use super::role::{Follower, Held, Role, SeenEntries};
use super::saved::{LogRecord, SavedLog, Unsaved};
use super::step::StepContext;
use super::timestamp::Timestamp;
use crate::ids::Time;

impl Replica<'_> {
    /// Returns what a durable replica must save, if there is something new since the last call. The
    /// host saves the answers of successive calls in their order, and calls [`Replica::saved`] for
    /// each or for the last of several.
    ///
    /// # Errors
    /// Fails if the memory does not fit.
    pub fn take_unsaved<M: Memory>(&mut self, memory: &M) -> Result<Option<Unsaved>, Halt> {
        let Self { common, role } = self;
        if !common.options.is_durable {
            return Ok(None);
        }
        let handed = common.disk.handed;
        let (stamp, repair, tail) = match role {
            Role::Leader(leader) => (common.promised, 0, leader.tail),
            Role::Follower(Follower { seen, .. })
                if seen.of == common.promised && seen.of != Timestamp::NONE =>
            {
                (seen.of, seen.repair, seen.below)
            }
            Role::Follower(_) | Role::Candidate(_) => (handed.stamp, handed.repair, handed.tail),
        };
        let is_gapped = matches!(role, Role::Follower(Follower { gapped: Some(_), .. }));
        let record = LogRecord {
            promised: common.promised,
            stamp,
            repair,
            tail,
            decided: common.delivered,
            begins: Log::new(memory.log(), common.shape).begins()?,
            is_voter: common.is_voter,
            is_gapped,
        };
        if record == (LogRecord { decided: record.decided, ..handed }) {
            return Ok(None);
        }
        let is_same_log = (stamp, repair) == (handed.stamp, handed.repair);
        let all = tail.saturating_sub(u64::from(common.shape.entries()));
        let from = if is_same_log { handed.tail.min(tail) } else { all };
        common.disk.handed = record;
        Ok(Some(Unsaved { from, record }))
    }

    /// Returns the record that was last taken. A snapshot is saved together with it. If it is
    /// another replica's, this is the record that is taken after [`Replica::restore`], which says
    /// that the log has gaps.
    #[must_use]
    pub const fn taken_record(&self) -> LogRecord {
        self.common.disk.handed
    }

    /// Copies an entry of the log for the disk: its header's cells, and then its payload. Returns
    /// its length, or `None` if the log has no entry at this index.
    ///
    /// # Errors
    /// Fails if the memory or the buffer does not fit. An entry takes fewer bytes than
    /// [`Shape::list_bytes`](super::Shape::list_bytes).
    pub fn copy_entry<M: Memory>(
        &self,
        place: u64,
        memory: &M,
        into: &mut [u8],
    ) -> Result<Option<usize>, Halt> {
        let log = Log::new(memory.log(), self.common.shape);
        let Some(entry) = log.load(place)? else { return Ok(None) };
        let (cells, payload) = into.split_at_mut(log.shape().header_bytes().min(into.len()));
        log.memory().reader().read(log.shape().header(place), cells)?;
        let payload = log.payload(place, entry.length(), payload)?;
        Ok(Some(cells.len().saturating_add(payload.len())))
    }

    /// Records that everything up to a record is on the disk.
    pub fn saved(&mut self, record: LogRecord) {
        self.common.disk.saved = record;
    }

    /// Puts an entry from the disk back into the log, before the first step. The host calls this in
    /// the order of the indices, beginning with the oldest entry on the disk, after
    /// [`Replica::restore`] if the disk has a snapshot. From the snapshot on, entries that were
    /// decided according to the record are delivered to the application again.
    ///
    /// # Errors
    /// Fails if the entries do not fit or do not continue each other.
    pub fn recover_entry<M: Memory, A: ShardApplication>(
        &mut self,
        record: &LogRecord,
        (place, bytes): (u64, &[u8]),
        memory: &M,
        application: &mut A,
    ) -> Result<(), Halt> {
        let Self { common, .. } = self;
        let log = Log::new(memory.log(), common.shape);
        let at_most = common.delivered.saturating_add(u64::from(common.shape.entries()));
        if place >= at_most || place >= record.tail {
            return Err(Halt::NotContinued);
        }
        log.clear(place)?;
        let (cells, payload) = bytes.split_at(log.shape().header_bytes().min(bytes.len()));
        log.memory().apply(log.shape().payload(place), payload)?;
        log.memory().apply(log.shape().header(place), cells)?;
        let entry = log.load(place)?.ok_or(Halt::NoEntry)?;
        if usize::try_from(entry.length()) != Ok(payload.len()) {
            return Err(Halt::NoEntry);
        }
        if place < common.delivered {
            return Ok(());
        }
        if log.control()?.tail.max(common.delivered) != place {
            return Err(Halt::NotContinued);
        }
        let tail = place.saturating_add(1);
        log.set_tail(tail)?;
        log.set_decided(record.decided.min(tail))?;
        // Entries on the disk may be delivered, whichever leader's stamp the log has.
        common.promised = record.promised;
        common.disk.saved = LogRecord { tail, stamp: record.promised, ..*record };
        let step = &StepContext { now: Time(0), fabric: &mut (), memory, log };
        common.deliver(&Held::default(), application, step)?;
        Ok(())
    }

    /// Continues as the replica that saved a record, after all its entries have been
    /// [recovered](Self::recover_entry).
    ///
    /// # Errors
    /// Fails if entries are missing.
    pub fn recover<M: Memory>(&mut self, record: &LogRecord, memory: &M) -> Result<(), Halt> {
        let Self { common, role } = self;
        let log = Log::new(memory.log(), common.shape);
        let reached = log.control()?.tail.max(common.delivered);
        if reached < record.tail || common.delivered < record.decided {
            return Err(Halt::NoEntry);
        }
        log.set_tail(record.tail)?;
        // A decided count from `begins` on would say that a leader has filled the gaps.
        let unfilled = if record.is_gapped { record.begins.saturating_sub(1) } else { u64::MAX };
        log.set_decided(common.delivered.min(record.tail).min(unfilled))?;
        log.set_stamp(record.stamp)?;
        log.set_begins(record.begins)?;
        log.set_promised(record.promised)?;
        common.promised = record.promised;
        common.is_voter = record.is_voter;
        common.disk = SavedLog { saved: *record, handed: *record };
        let gapped = record.is_gapped.then_some(record.stamp);
        *role = Role::Follower(Follower { gapped, ..Follower::default() });
        Ok(())
    }
}

impl Common<'_> {
    /// Returns whether a crash cannot take back the last promise.
    pub(super) fn is_promise_saved(&self) -> bool {
        !self.options.is_durable || self.disk.saved.promised >= self.promised
    }

    /// Returns the given end of the log, or the end of the part that has been saved under the
    /// current leader's stamp if that is lower.
    pub(super) fn saved_up_to(&self, end: u64) -> u64 {
        let LogRecord { stamp, tail, .. } = self.disk.saved;
        match (self.options.is_durable, stamp == self.promised) {
            (false, _) => end,
            (true, true) => end.min(tail),
            (true, false) => 0,
        }
    }

    /// Returns what a follower reports of the entries that it has seen: a durable one reports what
    /// it has saved.
    pub(super) fn saved_of(&self, seen: SeenEntries) -> SeenEntries {
        if !self.options.is_durable {
            return seen;
        }
        let LogRecord { stamp, repair, tail, .. } = self.disk.saved;
        SeenEntries { of: stamp, below: tail, repair }
    }
}
