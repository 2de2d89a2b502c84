//! How a starting replica gets its state: it begins with none as a founder, continues from its
//! disk, or takes over the state of a voter.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::tram::Memory;

use super::application::{ShardApplication, Upcalls};
use super::durable::{Journal, SavedContent};
use super::lent::ReplicaCell;
use super::service::Formation;
use super::snapshot::{Snapshot, SnapshotSources};
use super::start_error::StartError;
use crate::member::Stopped;

/// The interval between requests for a snapshot.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(20);

/// A replica that is about to run.
pub(super) struct Entering<'e, M, A> {
    pub(super) cell: &'e mut ReplicaCell,
    pub(super) memory: &'e M,
    pub(super) application: &'e mut A,
    pub(super) journal: Option<&'e mut Journal>,
    pub(super) incarnation: u16,
    pub(super) formation: Formation,
}

impl<M: Memory, A: ShardApplication> Entering<'_, M, A> {
    /// Saves that this replica is a founder, before its first step. The application's first state
    /// is saved too, because a later program may begin with another one.
    pub(super) fn found(self) -> Result<(), StartError> {
        let Self { cell, memory, application, journal, .. } = self;
        let Some(journal) = journal else { return Ok(()) };
        let mut state = Vec::new();
        application.snapshot().read_to_end(&mut state).map_err(StartError::StateRefused)?;
        cell.with_dependent_mut(|_, replica| {
            let mut snapshot = Snapshot { cells: vec![0; replica.snapshot_cells()], state };
            // The number of cells is right.
            let _ = replica.snapshot(&mut snapshot.cells);
            journal.save_with_snapshot(replica, memory, &snapshot)
        })?;
        Ok(())
    }

    /// Continues from the disk. The application receives again what its snapshot lacks.
    pub(super) fn continue_from(
        self,
        content: SavedContent,
        log_entries: u32,
    ) -> Result<(), StartError> {
        self.keep_incarnation()?;
        let Self { cell, memory, application, journal, .. } = self;
        let SavedContent { snapshot, record, entries } = content;
        let Snapshot { cells, state } = snapshot;
        application.restore(&mut state.as_slice()).map_err(StartError::StateRefused)?;
        let mut upcalls = Upcalls { application };
        cell.with_dependent_mut(|_, replica| {
            // The first state has no entries, so the core does not restore it.
            replica.restore(&cells, memory)?;
            let oldest = replica.delivered().saturating_sub(u64::from(log_entries));
            for (place, (_, bytes)) in entries.range(oldest..) {
                replica.recover_entry(&record, (*place, bytes), memory, &mut upcalls)?;
            }
            replica.recover(&record, memory)
        })
        .map_err(Stopped::Shard)?;
        if let Some(journal) = journal {
            journal.recovered(record);
        }
        Ok(())
    }

    /// Saves the incarnation of a replica that does not found its group, before it meets others.
    fn keep_incarnation(&self) -> Result<(), StartError> {
        let Self { journal: Some(journal), incarnation, formation, .. } = self else {
            return Ok(());
        };
        let founders = formation.founders.as_deref().unwrap_or_default();
        Ok(journal.keep_formation(*incarnation, founders, formation.stage)?)
    }

    /// Takes over a voter's state as soon as there is a voter.
    pub(super) fn take_over(
        self,
        source: &SnapshotSources,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<(), StartError> {
        self.keep_incarnation()?;
        let Self { cell, memory, application, journal, .. } = self;
        let snapshot = take_from(source, until, cancel)?;
        application.restore(&mut snapshot.state.as_slice()).map_err(StartError::StateRefused)?;
        cell.with_dependent_mut(|_, replica| {
            replica.restore(&snapshot.cells, memory).map_err(Stopped::Shard)?;
            journal.map_or(Ok(()), |journal| journal.save_with_snapshot(replica, memory, &snapshot))
        })?;
        Ok(())
    }
}

fn take_from(
    source: &SnapshotSources,
    until: Instant,
    cancel: &AtomicBool,
) -> Result<Snapshot, StartError> {
    loop {
        if let Some(snapshot) = source.take() {
            return Ok(snapshot);
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(StartError::Cancelled);
        }
        if Instant::now() >= until {
            let others = source.places.replicas_of(source.own.group);
            let others = others.filter(|other| *other != source.own);
            let missing = others.map(|other| source.places.name(other)).collect();
            return Err(StartError::NotMet { missing });
        }
        std::thread::sleep(SNAPSHOT_PAUSE);
    }
}
