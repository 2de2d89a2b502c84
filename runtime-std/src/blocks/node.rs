//! A process that participates in block groups.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use tramontane_core::fabric::HostBlocks as _;
use tramontane_core::ids::{NodeId, Rank};

use super::create_error::CreateError;
use super::end::GroupEnd;
use super::engine::Engine;
use super::group::{Asked, Group};
use super::messages::GroupMessages;
use super::numbers::{generation_of, layout_of};
use super::recipient::Recipient;
use super::request::{Opening, Request};
use crate::block_transfer::buffer::Buffer;
use crate::block_transfer::options::GroupOptions;
use crate::block_transfer::transfer::TransferView;
use crate::fabric::{AnyBlockStore, AnyFabric, BlockMemoryError};
use crate::group::{
    ConnectError, Connected, Description, FIRST_VIEW, StartError, StartOptions, connect,
};
use crate::member::Stopped;
use crate::poll::{Ending, Poller};

/// The interval between checks of whether the polling thread is running.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// A process connected to other processes, between which block groups can be created. Dropping it
/// ends all groups in this process.
pub struct BlockNode {
    poller: Poller,
    requests: Sender<Request>,
    store: AnyBlockStore,
    own: Rank,
    members: Vec<NodeId>,
    used: Mutex<BTreeSet<u64>>,
}

impl BlockNode {
    /// Connects to all other nodes of a description, as in a group with fixed membership, and waits
    /// until each node has connected. The description's subgroups and message settings are not
    /// used.
    ///
    /// ```
    /// use tramontane_runtime::blocks::BlockNode;
    /// use tramontane_runtime::group::{Description, StartOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // One node, so that this example runs by itself.
    /// let name = format!("blocks-{}", std::process::id());
    /// let nodes = Description::builder(&name).nodes(1).fixed().build()?;
    /// let node = BlockNode::start(nodes, StartOptions::new(0))?;
    /// node.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`ConnectError`]. In that case nothing is left open.
    pub fn start(
        description: Description,
        options: StartOptions<'_>,
    ) -> Result<Self, ConnectError> {
        let nodes: Vec<NodeId> = description.nodes.iter().map(|node| NodeId(node.id)).collect();
        let layout = layout_of(&nodes).map_err(StartError::from)?;
        let Connected { fabric, memory, own } = connect(description, options, &layout)?;
        let started = Self::of(fabric, TransferView::new(FIRST_VIEW, own, nodes.clone(), memory));
        Ok(started.map_err(StartError::from)?)
    }

    fn of(fabric: AnyFabric, table: TransferView) -> std::io::Result<Self> {
        let (own, members) = (table.own, table.members.clone());
        let store = fabric.block_store();
        let (requests, asked) = mpsc::channel();
        let ending = Arc::new(Ending::default());
        let engine = Engine::new(fabric, table, asked, &ending);
        let poller = Poller::start(engine, &ending)?;
        let used = Mutex::new(BTreeSet::new());
        Ok(Self { poller, requests, store, own, members, used })
    }

    /// Returns the id of this node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.members[self.own.index()]
    }

    /// Allocates memory for messages to be sent or received. Large buffers should be reused.
    ///
    /// # Errors
    /// [`BlockMemoryError`].
    pub fn buffer(&self, bytes: usize) -> Result<Buffer, BlockMemoryError> {
        Buffer::new(&self.store, bytes)
    }

    /// Returns the store that allocates memory, for a [`Recipient`] that allocates buffers as
    /// messages arrive.
    #[must_use]
    pub fn store(&self) -> &AnyBlockStore {
        &self.store
    }

    /// Creates a group. Every member calls this with the same number and the same members in the
    /// same order; the first member is the root. No member waits for the others.
    ///
    /// A number identifies one group for as long as the node runs. The supply of numbers is
    /// unlimited: use them from zero, in roughly ascending order. A number is refused if it is more
    /// than 1024 below the highest of any node, or thousands above it. A call waits while any node
    /// has an open group whose number is more than 1024 lower. A refused number remains unused.
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
        let end = Arc::new(GroupEnd::default());
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
        // Numbers of older generations are refused anyway, so they need not be remembered.
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

    /// Asks the polling thread to open a group, and waits for the answer.
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
                // A polling thread that has ended will not answer.
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

    /// Returns the reason why this node stopped, or `None` if it is running.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.poller.stopped()
    }

    /// Disconnects from the other nodes. Groups that have not ended end at this node, and fail at
    /// their other members.
    ///
    /// # Errors
    /// Fails with the reason why the node had already stopped.
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
