//! One member's side of a group: a transfer, its messages, and the receivers of the report of the
//! group's end.

use std::sync::Arc;

use tramontane_core::fabric::{BlockEvent, Blocks, Channel, ErrorKind, LossCause};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::Layout;
use tramontane_core::rdmc::transfer::{OpenError, Outcome};

use super::end::{Ended, GroupEnd};
use super::messages::{GroupMessages, Outgoing};
use super::request::Opening;
use crate::block_transfer::transfer::{Transfer, TransferSetup, TransferView};

/// The result of stepping a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// There was nothing to do.
    Idle,
    /// Something was done, or a post waits for space in a queue.
    Busy,
    /// The group has ended, and its end has been reported.
    Over,
}

/// One group.
pub(super) struct GroupTransfer {
    transfer: Transfer,
    messages: GroupMessages,
    table: Arc<TransferView>,
    number: u64,
    end: Arc<GroupEnd>,
    is_closing: bool,
    is_told: bool,
    /// Whether the group is on the engine's list of groups to step next.
    pub(super) is_awake: bool,
}

impl GroupTransfer {
    /// Opens a group.
    pub(super) fn open(
        opening: Opening,
        table: Arc<TransferView>,
        channel: Channel,
        fabric: &impl Blocks<Error = ErrorKind>,
    ) -> Result<Self, OpenError> {
        let Opening { number, members, options, messages, end, .. } = opening;
        let cells = table.cells(channel).ok_or(OpenError::Channel)?;
        let place = TransferSetup { channel, cells, members, staging: messages.staging() };
        let transfer = Transfer::open(&table, place, &options, fabric)?;
        let (is_closing, is_told, is_awake) = (false, false, false);
        Ok(Self { transfer, messages, table, number, end, is_closing, is_told, is_awake })
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn queue(&mut self, outgoing: Outgoing) {
        self.messages.queue(outgoing);
    }

    pub(super) fn close(&mut self) {
        self.is_closing = true;
    }

    pub(super) fn lost(&mut self, peer: Rank, cause: LossCause) {
        self.transfer.lost(self.table.view, peer, cause);
    }

    pub(super) fn take(&mut self, event: &BlockEvent) {
        self.transfer.take(event, &mut self.messages);
    }

    /// Does the work that is currently possible.
    pub(super) fn step(&mut self, fabric: &mut impl Blocks<Error = ErrorKind>) -> Stepped {
        let Self { transfer, messages, is_closing, .. } = self;
        submit(transfer, messages, *is_closing);
        let progress = transfer.step(fabric, messages);
        let Some(outcome) = transfer.outcome() else {
            return if progress.is_idle() { Stepped::Idle } else { Stepped::Busy };
        };
        if !self.is_told {
            let ended = self.table.ended(outcome);
            self.tell(&ended);
        }
        // A member that notices a failure first reports it to all others.
        if progress.is_idle() { Stepped::Over } else { Stepped::Busy }
    }

    /// Reports the end to the holder of the group's handle.
    pub(super) fn tell_handle(&self, ended: &Ended) {
        self.end.tell(ended);
    }

    /// Reports the end to the application, once, and to the holder of the handle.
    pub(super) fn tell(&mut self, ended: &Ended) {
        if !self.is_told {
            self.is_told = true;
            // The handle comes first, because an application that learns of the end may query the
            // handle, and must get the same answer.
            self.end.tell(ended);
            self.messages.recipient().ended(ended);
        }
    }
}

/// Passes the next message, or the close request, to the root's transfer.
fn submit(transfer: &mut Transfer, messages: &mut GroupMessages, is_closing: bool) {
    if transfer.is_moving() || transfer.outcome().is_some() {
        return;
    }
    if let Some((area, bytes)) = messages.take_up() {
        // The handle has checked that the message fits and does not follow a close.
        let _ = transfer.send(area, bytes);
    } else if is_closing {
        // Only the root's handle requests this, and repeating the request has no effect.
        let _ = transfer.close();
    }
}

impl TransferView {
    /// Returns the offset of a channel's cells in every row.
    fn cells(&self, channel: Channel) -> Option<usize> {
        Layout::of_channels(&self.members, channel.0.checked_add(1)?).ok()?.channel_offset(channel)
    }

    fn ended(&self, outcome: Outcome) -> Ended {
        match outcome {
            Outcome::Closed => Ended::Closed,
            Outcome::Failed(failure) => {
                let node: Option<NodeId> = self.members.get(failure.member.index()).copied();
                Ended::Failed { node: node.unwrap_or_default(), cause: failure.cause }
            }
        }
    }
}
