//! The groups of a copy: one from the root to all, for what is copied; and one from each receiver back to the root, for
//! what it has to say.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::Algorithm;

use super::talk::Said;
use crate::blocks::{BlockNode, Buffer, CreateError, Group, GroupOptions, Recipient};
use crate::cli::exit::{Failure, Status};
use crate::join::{JoinOptions, Meeting};
use crate::joined::BlockMemoryError;
use crate::member::Settings;

/// Bytes of a message of what is copied.
pub(super) const CHUNK_BYTES: usize = 16 << 20;

/// Messages that a member has memory for.
pub(super) const BUFFERS: usize = 4;

/// Bytes of what a receiver says at a time.
pub(super) const SAID_MAX: usize = 8 << 10;

/// The largest block: a message is one.
const BLOCK_MAX: usize = CHUNK_BYTES;

/// The group of what is copied.
const DATA: u16 = 0;

/// What a member's part in a copy is.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// All members, in rank order.
    pub(super) nodes: Vec<u32>,
    /// This one.
    pub(super) own: u32,
    /// Who copies to the others.
    pub(super) root: u32,
    pub(super) meeting: Meeting,
    pub(super) join_timeout: Duration,
    pub(super) options: GroupOptions,
}

/// Reads the size of a block.
pub(super) fn block_bytes(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(bytes) if (4096..=BLOCK_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(format!("not a number of bytes from 4096 to {BLOCK_MAX}")),
    }
}

impl Job {
    /// Meets all other members.
    pub(super) fn join(&self, cancel: &AtomicBool) -> Result<BlockNode, Failure> {
        let nodes: Vec<NodeId> = self.nodes.iter().copied().map(NodeId).collect();
        let options = JoinOptions {
            meeting: self.meeting.clone(),
            time_limit: self.join_timeout,
            cancel,
            settings: Settings::default(),
        };
        Ok(BlockNode::join(&nodes, NodeId(self.own), &options)?)
    }

    /// Who receives, in order.
    pub(super) fn receivers(&self) -> impl Iterator<Item = u32> + '_ {
        self.nodes.iter().copied().filter(|node| *node != self.root)
    }

    /// The group of what is copied.
    pub(super) fn data(
        &self,
        node: &BlockNode,
        recipient: impl Recipient + 'static,
    ) -> Result<Group, Failure> {
        let members: Vec<NodeId> = std::iter::once(self.root).chain(self.receivers()).map(NodeId).collect();
        Ok(node.create(DATA, &members, self.options, recipient)?)
    }

    /// The group of what one receiver says.
    pub(super) fn reports(
        &self,
        node: &BlockNode,
        receiver: u32,
        recipient: impl Recipient + 'static,
    ) -> Result<Group, Failure> {
        let place = self.receivers().position(|known| known == receiver);
        let number = place.and_then(|place| u16::try_from(place).ok()).unwrap_or_default().saturating_add(1);
        let options = GroupOptions {
            algorithm: Algorithm::Sequential,
            block_bytes: SAID_MAX,
            message_max: SAID_MAX,
            ..GroupOptions::default()
        };
        Ok(node.create(number, &[NodeId(receiver), NodeId(self.root)], options, recipient)?)
    }
}

/// Says something in a receiver's own group. Who cannot be told has ended, which is told otherwise.
pub(super) fn say(group: &Group, node: &BlockNode, said: &Said) -> Result<(), Failure> {
    let bytes =
        serde_json::to_vec(said).map_err(|error| Failure::new(Status::Other, error, "please report this"))?;
    let mut buffer = Buffer::to_send(node.store(), SAID_MAX)?;
    buffer[..bytes.len()].copy_from_slice(&bytes);
    let _ = group.send(buffer, bytes.len());
    Ok(())
}

/// Of one's own messages there is nothing to be told but that they are through.
pub(super) struct Quiet;

impl Recipient for Quiet {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        None
    }

    fn completed(&mut self, _: u64, _: Buffer, _: usize) {}
}

impl From<CreateError> for Failure {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Stopped(stopped) => stopped.into(),
            CreateError::Memory(error) => error.into(),
            error => Self::new(Status::Usage, error, "see 'tramontane copy --help'"),
        }
    }
}

impl From<BlockMemoryError> for Failure {
    fn from(error: BlockMemoryError) -> Self {
        match error {
            BlockMemoryError::SharedMemory(error) => error.into(),
            error => Self::told(Status::Usage, error),
        }
    }
}
