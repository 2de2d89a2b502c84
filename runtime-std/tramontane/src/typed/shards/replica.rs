//! The handle of a replica with a state machine.

use std::sync::{Arc, RwLock};

use serde::Serialize;
use tramontane_runtime::member::Stopped;
use tramontane_runtime::shards::{
    Description, ReplicaId, ReplicaStatus, Running, StartOptions, start,
};

use super::machine::ShardCopy;
use super::no_answers::ShardNotStarted;
use crate::typed::state_machine::StateMachine;

/// A replica of a group whose state machine all replicas of the group have. See
/// [`typed`](crate::typed). Dropping it closes the replica.
pub struct ShardReplica<M> {
    machine: Arc<RwLock<M>>,
    running: Running,
}

impl<M: StateMachine> ShardReplica<M>
where
    M::Answer: Serialize,
{
    /// Makes this process a replica. `machine` is the initial state of its group, which must be
    /// equal at all replicas of the group. A returning replica receives the group's state instead,
    /// and a replica of a durable overlay continues from its folder.
    ///
    /// # Errors
    /// [`ShardNotStarted`]. In that case nothing is left behind.
    pub fn start(
        description: &Description,
        replica: ReplicaId,
        options: StartOptions<'_>,
        machine: M,
    ) -> Result<Self, ShardNotStarted> {
        check_answers(description)?;
        let machine = Arc::new(RwLock::new(machine));
        let running = start(description, replica, options, ShardCopy::new(Arc::clone(&machine)))?;
        Ok(Self { machine, running })
    }

    /// Reads this replica's copy as it is now, which may lack commands that other replicas have
    /// already applied. No command is applied here during the call, so it must be short.
    ///
    /// # Errors
    /// Fails with the reason why the replica has ended.
    pub fn query_local<R>(&self, read: impl FnOnce(&M) -> R) -> Result<R, Stopped> {
        let machine = self.machine.read();
        match (machine, self.running.stopped()) {
            (Ok(machine), None) => Ok(read(&machine)),
            (_, stopped) => Err(stopped.unwrap_or(Stopped::Closed)),
        }
    }

    /// Returns the replica's status, which says whether it leads its group.
    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        self.running.status()
    }

    /// Returns the reason why the replica ended, or `None` if it is running.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.running.stopped()
    }

    /// Ends the replica. Returns the reason why it ended, which is [`Stopped::Closed`] if this call
    /// ended it.
    pub fn close(self) -> Stopped {
        self.running.close()
    }
}

/// Checks that replicas can answer.
pub(super) fn check_answers(description: &Description) -> Result<(), ShardNotStarted> {
    if description.answer_max == 0 { Err(ShardNotStarted::AnswerMax) } else { Ok(()) }
}

impl<M> std::fmt::Debug for ShardReplica<M> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ShardReplica").field("running", &self.running).finish_non_exhaustive()
    }
}
