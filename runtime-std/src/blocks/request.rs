//! What a node's polling thread is asked.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use tramontane_core::ids::Rank;

use super::create_error::CreateError;
use super::end::GroupEnd;
use super::messages::GroupMessages;
use crate::block_transfer::buffer::Buffer;
use crate::block_transfer::options::GroupOptions;

/// What application threads ask.
pub(super) enum Request {
    /// A group to be opened.
    Open(Box<Opening>),
    /// A message to be sent.
    Send { number: u64, buffer: Buffer, bytes: usize },
    /// A group to be closed.
    Close { number: u64 },
}

/// A group to be opened, and who waits for it.
pub(super) struct Opening {
    pub(super) number: u64,
    pub(super) members: Vec<Rank>,
    pub(super) options: GroupOptions,
    pub(super) messages: GroupMessages,
    pub(super) end: Arc<GroupEnd>,
    pub(super) answer: Sender<Result<(), CreateError>>,
}
