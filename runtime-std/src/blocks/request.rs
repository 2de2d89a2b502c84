//! Requests to a node's polling thread.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use tramontane_core::ids::Rank;

use super::create_error::CreateError;
use super::end::GroupEnd;
use super::messages::GroupMessages;
use crate::block_transfer::buffer::Buffer;
use crate::block_transfer::options::GroupOptions;

/// A request from an application thread.
pub(super) enum Request {
    /// Opens a group.
    Open(Box<Opening>),
    /// Sends a message.
    Send { number: u64, buffer: Buffer, bytes: usize },
    /// Closes a group.
    Close { number: u64 },
}

/// A group to be opened, and the channel on which to send the answer.
pub(super) struct Opening {
    pub(super) number: u64,
    pub(super) members: Vec<Rank>,
    pub(super) options: GroupOptions,
    pub(super) messages: GroupMessages,
    pub(super) end: Arc<GroupEnd>,
    pub(super) answer: Sender<Result<(), CreateError>>,
}
