//! The end of a group, and waiting for it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::transfer::Cause;

use crate::member::Stopped;

/// The way in which a group ended, as seen by one member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// Every message reached every member (RDM-6).
    #[error("the group was closed, and every message reached every member")]
    Closed,
    /// A member failed. Messages that were completed here are whole, but other members may lack
    /// them.
    #[error("the group ended at node {node}: {}", said(cause))]
    Failed {
        /// The node of the first failure that this member learned of.
        node: NodeId,
        /// The cause of the failure.
        cause: Cause,
    },
    /// This node stopped, which ended all its groups.
    #[error("this node stopped: {0}")]
    Stopped(Stopped),
}

pub(crate) fn said(cause: &Cause) -> String {
    match cause {
        Cause::Lost(cause) => cause.to_string(),
        Cause::NoMemory => "it did not have enough memory for a message".into(),
        Cause::Fabric => "its fabric refused a post".into(),
    }
}

/// The end of a group, for threads that wait for it.
#[derive(Debug, Default)]
pub(super) struct GroupEnd {
    ended: Mutex<Option<Ended>>,
    changed: Condvar,
}

impl GroupEnd {
    /// Records how the group ended. Only the first call counts.
    pub(super) fn tell(&self, ended: &Ended) {
        let mut seen = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get_or_insert_with(|| ended.clone());
        self.changed.notify_all();
    }

    pub(super) fn get(&self) -> Option<Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn wait(&self, timeout: Duration) -> Option<Ended> {
        let seen = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(seen, timeout, |ended| ended.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}
