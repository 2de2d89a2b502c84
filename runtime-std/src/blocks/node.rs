//! A process that takes part in block groups.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tramontane_core::fabric::HostBlocks as _;
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{OpenError, Window};

use super::buffer::Buffer;
use super::engine::{Engine, Opening, Request};
use super::generations::{CHANNELS, generation_of, layout_of};
use super::group::{Asked, End, Group};
use super::messages::GroupMessages;
use super::recipient::Recipient;
use super::transfer::Table;
use crate::carrier::Carrier;
use crate::fabric::{AnyFabric, BlockMemoryError, BlockStore};
use crate::group::{
    ConnectError, Connected, Description, FIRST_VIEW, StartError, StartOptions, connect,
};
use crate::member::Stopped;
use crate::poll::{Ending, Poller};

/// Bytes of a block where nothing else is said: RDMC found 1 MB best for large messages (5.2.1).
pub const BLOCK_BYTES_DEFAULT: usize = 1 << 20;

/// Between two looks whether the polling thread is there.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Over shared memory: messages up to here go in small blocks.
const SMALL_BYTES: usize = 4 << 20;

/// Over shared memory, of small messages: so that there is one for each of several processors.
const SMALL_BLOCK_BYTES: usize = 256 << 10;

/// Over shared memory, of larger ones: so much that what a block costs beside its copy does not
/// show, and so little that it stays in a cache until the last receiver has it.
const LARGE_BLOCK_BYTES: usize = 1 << 20;

/// Over shared memory: as many receives as its fabric takes, and two sends for each of eight
/// receivers. Whoever polls gives the processor away in between, and there should be something to
/// do when it has it again.
const SHARED_WINDOW: Window = Window { receives: 16, sends: 16 };

/// Over TCP: so little that a pipeline fills quickly over a slow link, and so much that what a
/// block costs beside its bytes hardly shows over a fast one.
const TCP_BLOCK_BYTES: usize = 128 << 10;

/// Over TCP: a notice waits behind whatever its way has queued, some blocks' time, and a sender
/// without a notice leaves its port idle. Sends are done when the kernel has them: two keep it
/// busy, and with more a later block shares the port with an earlier one.
const TCP_WINDOW: Window = Window { receives: 8, sends: 2 };

/// How a group's messages go. The same at all members.
#[derive(Clone, Copy, Debug)]
pub struct GroupOptions {
    /// Who sends which block to whom.
    pub algorithm: Algorithm,
    /// Bytes of every block but a message's last.
    pub block_bytes: usize,
    /// Bytes of the largest message; it costs a bit of memory a block.
    pub message_max: usize,
    /// How much is under way at a time.
    pub window: Window,
}

impl Default for GroupOptions {
    /// A pipeline of blocks of 1 MiB, for messages of up to 4 GiB. [`for_fabric`](Self::for_fabric)
    /// says what suits which fabric.
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Pipeline,
            block_bytes: BLOCK_BYTES_DEFAULT,
            message_max: 1 << 32,
            window: Window::default(),
        }
    }
}

impl GroupOptions {
    /// What suits a fabric, for messages of up to `message_max` bytes.
    ///
    /// Over shared memory every receiver copies for itself, straight from whoever has a block, so a
    /// root's sends cost it nothing: each block is offered to all at once, and all copy it while it
    /// is in a cache that they share. Everywhere else the root's port is what limits, and a
    /// pipeline uses everybody's. So it does where several roots send at the same time: then it is
    /// the better choice over shared memory too. Over TCP its blocks are small, and many receives
    /// are posted: what a peer has to say comes late there. `docs/lab-notes/slow-links.md` has the
    /// figures.
    #[must_use]
    pub fn for_fabric(carrier: Carrier, message_max: usize) -> Self {
        let usual = Self { message_max, ..Self::default() };
        match carrier {
            Carrier::SharedMemory => Self {
                algorithm: Algorithm::Interleaved,
                block_bytes: if message_max > SMALL_BYTES {
                    LARGE_BLOCK_BYTES
                } else {
                    SMALL_BLOCK_BYTES
                },
                window: SHARED_WINDOW,
                ..usual
            },
            Carrier::Tcp => Self { block_bytes: TCP_BLOCK_BYTES, window: TCP_WINDOW, ..usual },
            Carrier::Verbs => usual,
        }
    }

    pub(crate) fn blocks_max(&self) -> u32 {
        let blocks = self.message_max.div_ceil(self.block_bytes.max(1));
        // A pipeline's messages have two at least.
        u32::try_from(blocks).unwrap_or(u32::MAX).max(2)
    }
}

/// Why a group is not created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The number was given to a group of this node before.
    #[error("group {0} was created before; take another number")]
    NumberUsed(u64),
    /// The number is far below others that the nodes have come to.
    #[error(
        "it is too late to create group {0}: the nodes are at higher numbers; take one of those"
    )]
    NumberPassed(u64),
    /// The number is far above all that the nodes have come to.
    #[error(
        "group {0} is too far ahead; take numbers in rising order, of which none is more than {CHANNELS} above one before"
    )]
    NumberTooLarge(u64),
    /// A member that the node did not join.
    #[error("node {0} is none of those that were joined")]
    Unknown(NodeId),
    /// What the core says.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No memory for the blocks whose place is not known yet.
    #[error(transparent)]
    Memory(#[from] BlockMemoryError),
    /// This node stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A process among others, between which block groups come and go. Dropping it ends its part in all
/// of them.
pub struct BlockNode {
    poller: Poller,
    requests: Sender<Request>,
    store: BlockStore,
    own: Rank,
    members: Vec<NodeId>,
    used: Mutex<BTreeSet<u64>>,
}

impl BlockNode {
    /// Meets all other nodes of a description, as a group with fixed membership does, and waits
    /// until each is there. What the description says of subgroups and messages is not used.
    ///
    /// ```
    /// use tramontane_runtime::blocks::BlockNode;
    /// use tramontane_runtime::group::{Description, StartOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // One node, so that this runs by itself.
    /// let name = format!("blocks-{}", std::process::id());
    /// let nodes = Description::builder(&name).nodes(1).fixed().build()?;
    /// let node = BlockNode::start(nodes, StartOptions::new(0))?;
    /// node.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`]; nothing is left behind then.
    pub fn start(
        description: Description,
        options: StartOptions<'_>,
    ) -> Result<Self, ConnectError> {
        let nodes: Vec<NodeId> = description.nodes.iter().map(|node| NodeId(node.id)).collect();
        let layout = layout_of(&nodes).map_err(StartError::from)?;
        let Connected { fabric, memory, own } = connect(description, options, &layout)?;
        let started = Self::of(fabric, Table::new(FIRST_VIEW, own, nodes.clone(), memory));
        Ok(started.map_err(StartError::from)?)
    }

    fn of(fabric: AnyFabric, table: Table) -> std::io::Result<Self> {
        let (own, members) = (table.own, table.members.clone());
        let store = fabric.block_store();
        let (requests, asked) = mpsc::channel();
        let ending = Arc::new(Ending::default());
        let engine = Engine::new(fabric, table, asked, &ending);
        let poller = Poller::start(engine, &ending)?;
        let used = Mutex::new(BTreeSet::new());
        Ok(Self { poller, requests, store, own, members, used })
    }

    /// Which node this is.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.members[self.own.index()]
    }

    /// Memory that messages are sent from and come into. Large ones are best used again.
    ///
    /// # Errors
    /// [`BlockMemoryError`].
    pub fn buffer(&self, bytes: usize) -> Result<Buffer, BlockMemoryError> {
        Buffer::new(&self.store, bytes)
    }

    /// What gives memory, for a [`Recipient`] that makes buffers as messages come.
    #[must_use]
    pub fn store(&self) -> &BlockStore {
        &self.store
    }

    /// Creates a group: every member does, under the same number and with the same members in the
    /// same order, of whom the first is the root. Nobody waits for the others.
    ///
    /// A number names one group in the life of a node. There is no end of numbers: take them from
    /// zero on, and roughly in rising order. A number is refused if it is more than 1024 below the
    /// highest of any node, or thousands above it. A call waits while a group is open at any node
    /// whose number is more than 1024 lower. What is refused leaves its number free.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn create(
        &self,
        number: u64,
        members: &[NodeId],
        options: GroupOptions,
        recipient: impl Recipient + 'static,
    ) -> Result<Group, CreateError> {
        let ranks =
            members.iter().map(|member| self.rank_of(*member)).collect::<Result<Vec<_>, _>>()?;
        let is_root = ranks.first() == Some(&self.own);
        let staging = if is_root { None } else { Some(self.buffer(options.block_bytes)?) };
        let end = Arc::new(End::default());
        let (answer, answered) = mpsc::channel();
        let opening = Opening {
            number,
            members: ranks,
            options,
            messages: GroupMessages::new(Box::new(recipient), staging),
            end: Arc::clone(&end),
            answer,
        };
        self.take_number(number)?;
        if let Err(error) = self.open(opening, &answered) {
            self.used().remove(&number);
            return Err(error);
        }
        // Of older generations no number is taken any more, used or not.
        self.used().retain(|used| generation_of(*used) + 1 >= generation_of(number));
        Ok(Group {
            number,
            is_root,
            message_max: options.message_max,
            requests: self.requests.clone(),
            driver: Arc::clone(self.poller.driver()),
            end,
            asked: Mutex::new(Asked::default()),
        })
    }

    fn take_number(&self, number: u64) -> Result<(), CreateError> {
        if !self.used().insert(number) {
            return Err(CreateError::NumberUsed(number));
        }
        Ok(())
    }

    fn used(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the polling thread open a group, and waits for its answer.
    fn open(
        &self,
        opening: Opening,
        answered: &Receiver<Result<(), CreateError>>,
    ) -> Result<(), CreateError> {
        let stopped = || self.poller.stopped().unwrap_or(Stopped::Closed);
        self.requests.send(Request::Open(Box::new(opening))).map_err(|_| stopped())?;
        self.poller.driver().ring();
        loop {
            match answered.recv_timeout(LOOK_PAUSE) {
                Ok(opened) => return opened,
                Err(RecvTimeoutError::Disconnected) => return Err(stopped().into()),
                // A polling thread that has ended answers nobody.
                Err(RecvTimeoutError::Timeout) if self.poller.stopped().is_some() => {
                    return Err(stopped().into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn rank_of(&self, node: NodeId) -> Result<Rank, CreateError> {
        rank_among(&self.members, node).ok_or(CreateError::Unknown(node))
    }

    /// Why this node stopped, if it has.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.poller.stopped()
    }

    /// Leaves. Groups that are not over end here, and fail at their other members.
    ///
    /// # Errors
    /// Why the node had stopped before, if it had.
    pub fn close(self) -> Result<(), Stopped> {
        match self.poller.close() {
            Stopped::Closed => Ok(()),
            stopped => Err(stopped),
        }
    }
}

fn rank_among(members: &[NodeId], node: NodeId) -> Option<Rank> {
    let index = members.iter().position(|member| *member == node)?;
    u16::try_from(index).ok().map(Rank)
}

impl std::fmt::Debug for BlockNode {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("BlockNode").field("node", &self.node()).finish_non_exhaustive()
    }
}
