//! The groups of a copy: one from the root to all, for what is copied; and with each receiver two more, for what it has to
//! say to the root, and the root to it.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::Algorithm;
use tramontane_mesh::MeshError;

use super::messages::SAID_MAX;
use super::talk::Terms;
use crate::blocks::{BlockNode, CreateError, Group, GroupOptions, Recipient};
use crate::cli::exit::{Failure, Status};
use crate::join::{JoinError, JoinOptions, Meeting};
use crate::joined::BlockMemoryError;
use crate::member::Settings;
use crate::tcp::TcpError;

/// Bytes of a message of what is copied.
pub(super) const CHUNK_BYTES: usize = 16 << 20;

/// Messages that a member has memory for.
pub(super) const BUFFERS: usize = 4;

/// The largest block: a message is two, which is the least that a pipeline has. With larger ones the buffers would be larger
/// than messages.
const BLOCK_MAX: usize = CHUNK_BYTES / 2;

/// The group of what is copied.
const DATA: u16 = 0;

/// So many have two groups with the root, of those that a node has in its life.
const RECEIVERS_MAX: usize = 511;

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
        if self.receivers().count() > RECEIVERS_MAX {
            let what = format_args!("there are more than {RECEIVERS_MAX} receivers");
            return Err(Failure::new(
                Status::Usage,
                what,
                "copy to some of them first, and then to the others",
            ));
        }
        let nodes: Vec<NodeId> = self.nodes.iter().copied().map(NodeId).collect();
        let options = JoinOptions {
            meeting: self.meeting.clone(),
            time_limit: self.join_timeout,
            cancel,
            settings: Settings::default(),
        };
        BlockNode::join(&nodes, NodeId(self.own), &options).map_err(|error| self.not_met(error))
    }

    /// What keeps members of a copy apart that nothing else does.
    fn not_met(&self, error: JoinError) -> Failure {
        match of_mesh(&error) {
            Some(MeshError::AddressInUse { address }) => {
                let what = format_args!(
                    "{address} is in use: by this node of the group, if it runs, whose address a copy takes meanwhile"
                );
                let advice = "stop the node for so long, or give 'copy' a group file with other ports, at all nodes";
                Failure::new(Status::Group, what, advice)
            }
            Some(MeshError::WrongDigest { peer, .. }) => {
                let what = format_args!(
                    "node {peer} does not copy from node {}, or does not have this group file",
                    self.root
                );
                Failure::new(
                    Status::Group,
                    what,
                    "give the same --from and the same group file at all nodes",
                )
            }
            _ => error.into(),
        }
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
        let members: Vec<NodeId> =
            std::iter::once(self.root).chain(self.receivers()).map(NodeId).collect();
        Ok(node.create(DATA, &members, self.options, recipient)?)
    }

    /// How blocks go.
    pub(super) fn terms(&self) -> Terms {
        let GroupOptions { algorithm, block_bytes, .. } = self.options;
        Terms { algorithm: format!("{algorithm:?}").to_lowercase(), block_bytes }
    }

    /// The group of what one receiver says.
    pub(super) fn reports(
        &self,
        node: &BlockNode,
        receiver: u32,
        recipient: impl Recipient + 'static,
    ) -> Result<Group, Failure> {
        self.pair(node, 2 * self.place(receiver) + 1, [receiver, self.root], recipient)
    }

    /// The group of what one receiver is told.
    pub(super) fn words(
        &self,
        node: &BlockNode,
        receiver: u32,
        recipient: impl Recipient + 'static,
    ) -> Result<Group, Failure> {
        self.pair(node, 2 * self.place(receiver) + 2, [self.root, receiver], recipient)
    }

    fn place(&self, receiver: u32) -> usize {
        self.receivers().position(|known| known == receiver).unwrap_or_default()
    }

    /// A group of short messages from one member to another.
    fn pair(
        &self,
        node: &BlockNode,
        number: usize,
        members: [u32; 2],
        recipient: impl Recipient + 'static,
    ) -> Result<Group, Failure> {
        let options = GroupOptions {
            algorithm: Algorithm::Sequential,
            block_bytes: SAID_MAX,
            message_max: SAID_MAX,
            ..GroupOptions::default()
        };
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        Ok(node.create(number, &members.map(NodeId), options, recipient)?)
    }
}

fn of_mesh(error: &JoinError) -> Option<&MeshError> {
    match error {
        JoinError::Tcp(TcpError::Mesh(error)) => Some(error),
        #[cfg(feature = "verbs")]
        JoinError::Verbs(tramontane_verbs::JoinError::Mesh(error)) => Some(error),
        _ => None,
    }
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
