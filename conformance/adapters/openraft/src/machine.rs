//! The state machine: passes each message on once, in log order.
//!
//! The log itself is its state: after a restart openraft applies all entries again. No snapshot is
//! made.

use std::collections::HashSet;
use std::io::{self, Cursor};
use std::sync::mpsc::Sender;

use openraft::storage::{RaftStateMachine, Snapshot};
use openraft::{
    BasicNode, Entry, EntryPayload, LogId, OptionalSend, RaftSnapshotBuilder, SnapshotMeta,
    StorageIOError, StoredMembership,
};

use crate::types::{Record, StorageError, Types};

/// The state machine.
pub struct Machine {
    applied: Option<LogId<u64>>,
    membership: StoredMembership<u64, BasicNode>,
    /// The messages already passed on: a message whose answer was lost may be in the log twice.
    known: HashSet<String>,
    deliveries: Sender<(u64, Record)>,
}

impl Machine {
    /// Creates a state machine without entries. Applied entries are sent to `deliveries`, with
    /// their position in the log.
    pub fn new(deliveries: Sender<(u64, Record)>) -> Self {
        Self {
            applied: None,
            membership: StoredMembership::default(),
            known: HashSet::new(),
            deliveries,
        }
    }

    fn take(&mut self, place: u64, record: Record) {
        if self.known.insert(record.message.clone()) {
            // This fails only while the process ends.
            let _ = self.deliveries.send((place, record));
        }
    }
}

/// The error for requests that make sense only after a snapshot.
fn none() -> StorageError {
    let error = io::Error::other("no snapshot is ever made");
    StorageIOError::read_snapshot(None, &error).into()
}

/// A snapshot builder that builds nothing.
pub struct NoSnapshots;

impl RaftSnapshotBuilder<Types> for NoSnapshots {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        Err(none())
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = NoSnapshots;

    async fn applied_state(
        &mut self,
    ) -> Result<(Option<LogId<u64>>, StoredMembership<u64, BasicNode>), StorageError> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<()>, StorageError>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut answers = Vec::new();
        for entry in entries {
            self.applied = Some(entry.log_id);
            match entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Normal(record) => self.take(entry.log_id.index, record),
                EntryPayload::Membership(membership) => {
                    self.membership = StoredMembership::new(Some(entry.log_id), membership);
                }
            }
            answers.push(());
        }
        Ok(answers)
    }

    async fn get_snapshot_builder(&mut self) -> NoSnapshots {
        NoSnapshots
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Err(none())
    }

    async fn install_snapshot(
        &mut self,
        _meta: &SnapshotMeta<u64, BasicNode>,
        _snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        Err(none())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn duplicate_log_entry_is_delivered_once() {
        let (sender, deliveries) = std::sync::mpsc::channel();
        let mut machine = Machine::new(sender);
        let entry = |index, message: &str| Entry {
            log_id: LogId::new(openraft::CommittedLeaderId::new(1, 1), index),
            payload: EntryPayload::Normal(Record {
                message: message.to_owned(),
                sender: "n0".to_owned(),
                groups: Vec::new(),
                payload: String::new(),
            }),
        };
        machine.apply([entry(1, "a"), entry(2, "b"), entry(3, "a")]).await.expect("it is taken");
        let handed: Vec<_> =
            deliveries.try_iter().map(|(place, record)| (place, record.message)).collect();
        assert_eq!(handed, [(1, "a".to_owned()), (2, "b".to_owned())]);
    }
}
