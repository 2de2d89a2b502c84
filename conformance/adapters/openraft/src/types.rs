//! The contents of the log, and their types for openraft.

use std::io::Cursor;

use openraft::{BasicNode, Entry, TokioRuntime};
use serde::{Deserialize, Serialize};

/// A message in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The message's name, which identifies duplicates.
    pub message: String,
    /// The node that was asked to send it.
    pub sender: String,
    /// The groups that the message is addressed to.
    pub groups: Vec<String>,
    /// The payload.
    pub payload: String,
}

openraft::declare_raft_types!(
    /// The types of this log.
    pub Types:
        D = Record,
        R = (),
        NodeId = u64,
        Node = BasicNode,
        Entry = Entry<Types>,
        SnapshotData = Cursor<Vec<u8>>,
        AsyncRuntime = TokioRuntime,
);

/// A server of the log.
pub type Raft = openraft::Raft<Types>;

/// The error of openraft's storage.
pub type StorageError = openraft::StorageError<u64>;
