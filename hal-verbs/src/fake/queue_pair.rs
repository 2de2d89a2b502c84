//! Queue pairs: the handles of their owners.

use std::io;

use super::counts::CommandKind;
use super::pair::FakeReceive;
use super::request::LocalBytes;
use super::{CompletionQueue, ProtectionDomain, SendList};
use crate::adapter::{Access, LocalRange, QueuePairLimits, QueuePairState, Route, SendTimes};
use crate::devices::DataInOrder;

/// A reliable connection to one peer.
#[derive(Debug)]
pub(crate) struct QueuePair {
    id: u64,
    number: u32,
    inline_bytes_max: u32,
    domain: ProtectionDomain,
    _completions: CompletionQueue,
}

impl QueuePair {
    /// Creates a queue pair in the reset state. Both of its queues report to one completion queue.
    pub(crate) fn new(
        domain: &ProtectionDomain,
        completions: &CompletionQueue,
        limits: QueuePairLimits,
    ) -> io::Result<Self> {
        let opened = &domain.0.context.0;
        let made = opened.core.command(opened.id, CommandKind::CreateQueuePair, |hardware| {
            hardware.create_pair((opened.id, domain.0.id, completions.0.id), limits)
        });
        let (id, number, inline_bytes_max) = made?;
        let domain = domain.clone();
        Ok(Self { id, number, inline_bytes_max, domain, _completions: completions.clone() })
    }

    /// Returns the number that peers need; 24 bits.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the maximum number of bytes that can be sent inline.
    pub(crate) const fn inline_bytes_max(&self) -> u32 {
        self.inline_bytes_max
    }

    fn command<R>(
        &self,
        kind: CommandKind,
        action: impl FnOnce(&mut super::hardware::Hardware) -> R,
    ) -> R {
        let opened = &self.domain.0.context.0;
        opened.core.command(opened.id, kind, action)
    }

    /// Moves the queue pair to RESET.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        self.command(CommandKind::Reset, |hardware| hardware.reset_pair(self.id))
    }

    /// Moves the queue pair from reset to initialised: binds it to a port and a partition, and sets
    /// the remote end's rights.
    pub(crate) fn initialise(
        &mut self,
        port: u8,
        partition_index: u16,
        access: Access,
    ) -> io::Result<()> {
        self.command(CommandKind::Initialise, |hardware| {
            hardware.initialise_pair(self.id, (port, partition_index), access)
        })
    }

    /// Moves the queue pair from initialised to connected: sets the remote end's address. From then
    /// on, its packets are accepted.
    pub(crate) fn connect(&mut self, route: &Route) -> io::Result<()> {
        self.command(CommandKind::ReadyToReceive, |hardware| hardware.connect_pair(self.id, route))
    }

    /// Enables sending on a connected queue pair.
    pub(crate) fn start(&mut self, times: &SendTimes) -> io::Result<()> {
        self.command(CommandKind::ReadyToSend, |hardware| hardware.start_pair(self.id, times))
    }

    /// Queries the state from the device.
    pub(crate) fn state(&self) -> QueuePairState {
        self.command(CommandKind::QueryQueuePair, |hardware| hardware.pair_state(self.id))
    }

    /// Returns whether the bytes of incoming writes are placed in order, according to the device.
    pub(crate) fn data_in_order(&self) -> DataInOrder {
        self.command(CommandKind::QueryDataInOrder, |hardware| hardware.data_in_order(self.id))
    }

    /// Posts a list with one doorbell.
    pub(crate) fn post(&mut self, list: SendList<'_>) -> io::Result<()> {
        let requests = list.into_requests();
        self.domain.0.context.0.core.with(|hardware| hardware.post(self.id, requests))
    }

    /// Posts a receive: for immediate values without bytes, or into a range of registered memory.
    pub(crate) fn post_receive(
        &mut self,
        name: u64,
        into: Option<LocalRange<'_>>,
    ) -> io::Result<()> {
        let receive = FakeReceive { name, into: into.map(LocalBytes::from) };
        self.domain.0.context.0.core.with(|hardware| hardware.post_receive(self.id, receive))
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.command(CommandKind::DestroyQueuePair, |hardware| hardware.destroy_pair(self.id));
    }
}
