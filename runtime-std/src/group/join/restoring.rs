//! The destinations of restored data: the application, and the logs of logged subgroups.
//!
//! # Invariants
//! - The application has received exactly the content of its log. A log that is cut, or that starts
//!   anew, is passed to the application again from its beginning.

use std::io::Write as _;

use tramontane_control::{Session, SessionError};
use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};
use tramontane_log::{SnapshotWriter, SystemFolder};

use super::attempt_error::{AttemptError, STALL};
use super::transfer_progress::TransferProgress;
use crate::group::delivery::application::Application;
use crate::group::delivery::message::Message;
use crate::group::delivery::messages::Messages;
use crate::group::durable::data::DataFolder;
use crate::group::durable::delivered::Delivered;
use crate::group::durable::taking_over::{Both, TakeOverError};

/// A member that is not yet running, as seen by the code that restores it.
pub(crate) struct Restoring<'t, A> {
    pub(crate) application: &'t mut A,
    pub(crate) data: &'t mut DataFolder,
}

impl<A: Application> Restoring<'_, A> {
    /// Delivers a message that was delivered before this node was a member.
    pub(crate) fn replay(&mut self, delivered: &Delivered) -> Result<(), AttemptError> {
        if let Some(log) = self.data.log(SubgroupId(delivered.subgroup)) {
            log.take(delivered)?;
        }
        hand_over(delivered, self.application);
        Ok(())
    }

    /// Passes a state of any size to the application as it arrives. In a logged subgroup, it is the
    /// state after the first `records` records, and the log continues after it.
    pub(crate) fn restore(
        &mut self,
        session: &mut Session,
        subgroup: SubgroupId,
        view: ViewId,
        records: u64,
    ) -> Result<(), AttemptError> {
        let mut log = self.data.log(subgroup);
        let mut state = log.as_mut().map(|log| log.begin_state(records, view)).transpose()?;
        restore(session, subgroup, self.application, state.as_mut())?;
        if let (Some(log), Some(state)) = (log, state) {
            log.install(state.finish().map_err(TakeOverError::from)?, records)?;
        }
        Ok(())
    }

    /// Takes records of a log, starting at number `first`. The log and the application continue
    /// with them.
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

    /// Passes a log to the application from its beginning, unless the application has received
    /// exactly the content of the log.
    pub(crate) fn hand_over_log(&mut self, subgroup: SubgroupId) -> Result<(), AttemptError> {
        let Self { application, data } = self;
        let log = data.log(subgroup).ok_or(AttemptError::Malformed)?;
        log.commit()?;
        if log.is_handed_over() {
            return Ok(());
        }
        let state = log.state()?;
        application
            .restore(subgroup, &mut state.unwrap_or_default().as_slice())
            .map_err(AttemptError::Restore)?;
        log.hand_over(|delivered| hand_over(delivered, *application))?;
        Ok(())
    }

    /// Resets the application when the group continues from its logs, or restarts with empty ones.
    /// The application receives these logs, and returns to the initial state in every other
    /// subgroup that it has restored.
    pub(crate) fn reset(mut self, progress: &mut TransferProgress) -> Result<(), AttemptError> {
        for subgroup in std::mem::take(progress).subgroups() {
            if self.data.log(subgroup).is_none() {
                let begun = self.application.restore(subgroup, &mut std::io::empty());
                begun.map_err(AttemptError::Restore)?;
            }
        }
        let logged: Vec<SubgroupId> = self.data.logs.iter().map(|log| log.subgroup).collect();
        logged.into_iter().try_for_each(|subgroup| self.hand_over_log(subgroup))
    }

    /// Makes the restored data durable.
    pub(crate) fn commit(&mut self) -> Result<(), AttemptError> {
        for log in &mut self.data.logs {
            log.commit()?;
        }
        Ok(())
    }
}

/// Passes a state to the application as it arrives, and to a log.
fn restore<A: Application>(
    session: &mut Session,
    subgroup: SubgroupId,
    application: &mut A,
    log: Option<&mut SnapshotWriter<SystemFolder>>,
) -> Result<(), AttemptError> {
    let (mut reader, writer) = std::io::pipe().map_err(AttemptError::Restore)?;
    std::thread::scope(|scope| {
        let received = scope.spawn(move || {
            let mut writer = Both(writer, log);
            let received = session.receive_stream(&mut writer, u64::MAX, STALL);
            // Flushes buffered data. Dropping the writer then ends the stream, for which the reader
            // waits.
            received.and_then(|_| writer.flush().map_err(SessionError::Local))
        });
        let restored = application.restore(subgroup, &mut reader);
        drop(reader);
        let received = received.join().unwrap_or(Err(SessionError::Stopped));
        match (received, restored) {
            (Ok(()), Ok(())) => Ok(()),
            // The application has stopped reading.
            (Ok(()) | Err(SessionError::Local(_)), Err(error)) => Err(AttemptError::Restore(error)),
            // The state was truncated, even if the application accepts it.
            (Err(error), _) => Err(error.into()),
        }
    })
}

/// Delivers a message that was delivered before this node was a member.
pub(crate) fn hand_over<A: Application>(delivered: &Delivered, application: &mut A) {
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
    application.deliver(&mut Messages::replayed(message));
}
