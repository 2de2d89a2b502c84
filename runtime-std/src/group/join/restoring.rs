//! Where what is restored goes: to the application, and to the logs of logged subgroups.
//!
//! # Invariants
//! - The application has been handed what its log has, and nothing else: a log that is cut, or that
//!   begins anew, is handed over from its beginning again.

use std::io::Write as _;

use tramontane_control::{Session, SessionError};
use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};
use tramontane_log::{SnapshotWriter, SystemFolder};

use super::attempt_error::{AttemptError, STALL};
use super::transfer_progress::TransferProgress;
use crate::group::delivery::message::Message;
use crate::group::delivery::messages::Messages;
use crate::group::delivery::replica::Replica;
use crate::group::durable::data::DataFolder;
use crate::group::durable::delivered::Delivered;
use crate::group::durable::taking_over::{Both, TakeOverError};

/// A member that is not up yet, as what it restores sees it.
pub(crate) struct Restoring<'t, R> {
    pub(crate) replica: &'t mut R,
    pub(crate) data: &'t mut DataFolder,
}

impl<R: Replica> Restoring<'_, R> {
    /// Hands over a message that was delivered before this node was a member.
    pub(crate) fn replay(&mut self, delivered: &Delivered) -> Result<(), AttemptError> {
        if let Some(log) = self.data.log(SubgroupId(delivered.subgroup)) {
            log.take(delivered)?;
        }
        hand_over(delivered, self.replica);
        Ok(())
    }

    /// Hands a state to the application as it comes, whatever its size. It is that after so many
    /// records of the subgroup's log, where it is logged, which goes on behind it.
    pub(crate) fn restore(
        &mut self,
        session: &mut Session,
        subgroup: SubgroupId,
        view: ViewId,
        records: u64,
    ) -> Result<(), AttemptError> {
        let mut log = self.data.log(subgroup);
        let mut state = log.as_mut().map(|log| log.begin_state(records, view)).transpose()?;
        restore(session, subgroup, self.replica, state.as_mut())?;
        if let (Some(log), Some(state)) = (log, state) {
            log.install(state.finish().map_err(TakeOverError::from)?, records)?;
        }
        Ok(())
    }

    /// Records came of a log, the first of that number: the log goes on with them, and so does the
    /// application.
    pub(crate) fn take_records(
        &mut self,
        subgroup: SubgroupId,
        first: u64,
        records: &[Delivered],
    ) -> Result<(), AttemptError> {
        let log = self.data.log(subgroup).ok_or(AttemptError::Malformed)?;
        if log.next().0 != first || records.iter().any(|record| record.subgroup != subgroup.0) {
            return Err(AttemptError::Malformed);
        }
        records.iter().try_for_each(|record| self.replay(record))
    }

    /// Hands a log to the application from its beginning, if it has not been handed all of it, and
    /// nothing else.
    pub(crate) fn hand_over_log(&mut self, subgroup: SubgroupId) -> Result<(), AttemptError> {
        let Self { replica, data } = self;
        let log = data.log(subgroup).ok_or(AttemptError::Malformed)?;
        log.commit()?;
        if log.is_handed_over() {
            return Ok(());
        }
        let state = log.state()?;
        replica
            .restore(subgroup, &mut state.unwrap_or_default().as_slice())
            .map_err(AttemptError::Restore)?;
        log.hand_over(|delivered| hand_over(delivered, *replica))?;
        Ok(())
    }

    /// The group goes on from its logs, or begins anew with empty ones: the application is handed
    /// these, and goes back to the beginning of all else that it took over.
    pub(crate) fn reset(mut self, progress: &mut TransferProgress) -> Result<(), AttemptError> {
        for subgroup in std::mem::take(progress).subgroups() {
            if self.data.log(subgroup).is_none() {
                let begun = self.replica.restore(subgroup, &mut std::io::empty());
                begun.map_err(AttemptError::Restore)?;
            }
        }
        let logged: Vec<SubgroupId> = self.data.logs.iter().map(|log| log.subgroup).collect();
        logged.into_iter().try_for_each(|subgroup| self.hand_over_log(subgroup))
    }

    /// Makes durable what was restored.
    pub(crate) fn commit(&mut self) -> Result<(), AttemptError> {
        for log in &mut self.data.logs {
            log.commit()?;
        }
        Ok(())
    }
}

/// Hands a state to the application as it comes, and to a log.
fn restore<R: Replica>(
    session: &mut Session,
    subgroup: SubgroupId,
    replica: &mut R,
    log: Option<&mut SnapshotWriter<SystemFolder>>,
) -> Result<(), AttemptError> {
    let (mut reader, writer) = std::io::pipe().map_err(AttemptError::Restore)?;
    std::thread::scope(|scope| {
        let received = scope.spawn(move || {
            let mut writer = Both(writer, log);
            let received = session.receive_stream(&mut writer, u64::MAX, STALL);
            // What is still in a buffer; and then the end, which the reader waits for.
            received.and_then(|_| writer.flush().map_err(SessionError::Local))
        });
        let restored = replica.restore(subgroup, &mut reader);
        drop(reader);
        let received = received.join().unwrap_or(Err(SessionError::Stopped));
        match (received, restored) {
            (Ok(()), Ok(())) => Ok(()),
            // The application stopped reading.
            (Ok(()) | Err(SessionError::Local(_)), Err(error)) => Err(AttemptError::Restore(error)),
            // A state that was cut short, whatever the application makes of it.
            (Err(error), _) => Err(error.into()),
        }
    })
}

/// Hands over a message that was delivered before this node was a member.
pub(crate) fn hand_over<R: Replica>(delivered: &Delivered, replica: &mut R) {
    let message = Message {
        subgroup: SubgroupId(delivered.subgroup),
        view: ViewId(delivered.view),
        place: Place(delivered.place),
        sender: NodeId(delivered.sender),
        payload: &delivered.payload,
        client: None,
        is_large: delivered.is_large,
        is_replayed: true,
    };
    replica.deliver(&mut Messages::replayed(message));
}
