//! A process that takes part in block groups.

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
use crate::fabric::{AnyFabric, BlockMemoryError, BlockStore};
use crate::group::{
    ConnectError, Connected, Description, FIRST_VIEW, StartError, StartOptions, connect,
};
use crate::member::Stopped;
use crate::poll::{Ending, Poller};

/// Between two looks whether the polling thread is there.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

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
