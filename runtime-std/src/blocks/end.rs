//! How a group ended, and who waits for that.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::transfer::Cause;

use crate::member::Stopped;

/// How a group ended, as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// Every message reached every member (RDM-6).
    #[error("the group was closed: everything reached everybody")]
    Closed,
    /// Somebody failed. What was completed here is whole; others may lack it.
    #[error("the group ended at node {node}: {}", said(cause))]
    Failed {
        /// Whose failure was the first that this member learned.
        node: NodeId,
        /// What became of it.
        cause: Cause,
    },
    /// This node stopped, and all its groups with it.
    #[error("this node stopped: {0}")]
    Stopped(Stopped),
}

pub(crate) fn said(cause: &Cause) -> String {
    match cause {
        Cause::Lost(cause) => cause.to_string(),
        Cause::NoMemory => "it had no memory for a message".into(),
        Cause::Fabric => "its fabric refused a post".into(),
    }
}

/// How a group ended, once it has, for whoever waits.
#[derive(Debug, Default)]
pub(super) struct GroupEnd {
    ended: Mutex<Option<Ended>>,
    changed: Condvar,
}

impl GroupEnd {
    /// The first end counts.
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
