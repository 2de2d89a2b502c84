//! The core's transfer stored together with everything that it borrows, so that it can be moved.

use std::sync::Arc;

use self_cell::{MutBorrow, self_cell};
use tramontane_core::fabric::ViewRows as _;
use tramontane_core::fabric::{
    Area, BlockEvent, Blocks, Channel, ErrorKind, LossCause, ViewMemory,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::rdmc::transfer::{
    BlockGroup, CloseError, MessageMemory, OpenError, Outcome, Progress, SendError, Setup,
    words_for,
};

use super::options::GroupOptions;
use crate::member::Memory;

/// The rows of a view and their owners.
pub(crate) struct TransferView {
    pub(crate) view: ViewId,
    pub(crate) own: Rank,
    pub(crate) members: Vec<NodeId>,
    memory: Memory,
}

impl TransferView {
    pub(crate) fn new(view: ViewId, own: Rank, members: Vec<NodeId>, memory: Memory) -> Self {
        Self { view, own, members, memory }
    }

    pub(crate) fn memory(&self) -> ViewMemory<'_> {
        ViewMemory {
            own: self.own,
            members: &self.members,
            row: self.memory.row(),
            rows: self.memory.rows(),
        }
    }
}

/// Identifies the group of a view that a transfer serves. Everything except `staging` is the same
/// at all members.
pub(crate) struct TransferSetup {
    pub(crate) channel: Channel,
    /// The offset of the channel's cells in every row.
    pub(crate) cells: usize,
    /// The members, starting with the root.
    pub(crate) members: Vec<Rank>,
    /// The area into which first blocks are received. The root posts no receive.
    pub(crate) staging: Area,
}

/// The memory that a transfer borrows.
struct TransferMemory {
    table: Arc<TransferView>,
    members: Vec<Rank>,
    /// One bit for each block of a message.
    words: Vec<u64>,
}

self_cell!(
    struct GroupCell {
        owner: MutBorrow<TransferMemory>,
        #[not_covariant]
        dependent: BlockGroup,
    }
);

/// One member's state in one block group. See [`BlockGroup`].
pub(crate) struct Transfer {
    cell: GroupCell,
    channel: Channel,
}

impl Transfer {
    pub(crate) fn open(
        table: &Arc<TransferView>,
        place: TransferSetup,
        options: &GroupOptions,
        fabric: &impl Blocks<Error = ErrorKind>,
    ) -> Result<Self, OpenError> {
        let TransferSetup { channel, cells, members, staging } = place;
        let words = vec![0; words_for(options.blocks_max())];
        let lent = TransferMemory { table: Arc::clone(table), members, words };
        let cell = GroupCell::try_new(MutBorrow::new(lent), |lent| {
            let TransferMemory { table, members, words } = lent.borrow_mut();
            let setup = Setup {
                view: table.view,
                channel,
                members,
                algorithm: options.algorithm,
                block_bytes: options.block_bytes,
                cells,
                staging,
                window: options.window,
                checks: tramontane_core::check::Checks::Off,
            };
            BlockGroup::open(setup, &table.memory(), fabric, words)
        })?;
        Ok(Self { cell, channel })
    }

    pub(crate) const fn channel(&self) -> Channel {
        self.channel
    }

    pub(crate) fn lost(&mut self, view: ViewId, peer: Rank, cause: LossCause) {
        self.cell.with_dependent_mut(|_, group| group.lost(view, peer, cause));
    }

    pub(crate) fn take(&mut self, event: &BlockEvent, memory: &mut impl MessageMemory) {
        self.cell.with_dependent_mut(|_, group| group.take(event, memory));
    }

    pub(crate) fn step(
        &mut self,
        fabric: &mut impl Blocks<Error = ErrorKind>,
        memory: &mut impl MessageMemory,
    ) -> Progress {
        self.cell.with_dependent_mut(|_, group| group.step(fabric, memory))
    }

    pub(crate) fn send(&mut self, source: Area, bytes: usize) -> Result<(), SendError> {
        self.cell.with_dependent_mut(|_, group| group.send(source, bytes))
    }

    pub(crate) fn close(&mut self) -> Result<(), CloseError> {
        self.cell.with_dependent_mut(|_, group| group.close())
    }

    /// Returns how the group ended, or `None` while it runs.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.cell.with_dependent(|_, group| group.outcome())
    }

    /// Returns whether a message is in flight at this member.
    pub(crate) fn is_moving(&self) -> bool {
        self.cell.with_dependent(|_, group| group.is_moving())
    }
}
