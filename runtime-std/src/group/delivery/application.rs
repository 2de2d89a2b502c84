//! The interface between an application and its group. The application receives messages and views,
//! and is asked for its state.

use std::io;
use std::io::Read;

use tramontane_control::client_messages::ClientId;
use tramontane_core::ids::SubgroupId;
use tramontane_core::node::DurableCounts;

use super::message::ViewChanged;
use super::messages::Messages;
use crate::block_transfer::buffer::Buffer;
use crate::member::Stopped;

/// An application whose state is the same at all members of its subgroups, because all members
/// receive the same messages in the same order.
///
/// A closure over [`Messages`] is also an application: one that has no state for joining nodes.
///
/// # What is guaranteed
/// - Calls are made one at a time, by the thread that drives the member. A panic stops the member
///   (DEL-2), and so does [`give_up`](crate::member::give_up).
/// - Members that receive the same two consecutive calls of [`Application::view_changed`] receive
///   the same messages between them (VIE-8), each message once, in one order per subgroup (ORD-2).
/// - [`Application::snapshot`] is called between two messages, and excludes all messages delivered
///   after the call.
///
/// No call may take longer than the group's failure timeout, or the other members consider this
/// member dead (VIE-2). The limit applies to each call separately.
pub trait Application: Send {
    /// Receives messages of one subgroup that have become stable. They count as delivered when this
    /// call returns, whether they were taken or not.
    fn deliver(&mut self, messages: &mut Messages<'_, '_>);

    /// Receives the buffer, of `bytes` bytes, of another member's large message that has just been
    /// delivered. Called once per message, in order. An application that needs the bytes for longer
    /// can keep the buffer instead of copying it. If it has a buffer that it no longer needs, it
    /// returns that buffer for reuse; otherwise new memory is allocated.
    fn exchange_large(
        &mut self,
        subgroup: SubgroupId,
        buffer: Buffer,
        bytes: usize,
    ) -> Option<Buffer> {
        let _ = (subgroup, bytes);
        Some(buffer)
    }

    /// Reports that a view has been installed. Later messages belong to it.
    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        let _ = change;
    }

    /// Reports that the group has forgotten an external client, because the client has ended or its
    /// lease has expired (EXT-1). All members receive this call between the same messages. A later
    /// client with the same id is a new client.
    fn client_forgotten(&mut self, subgroup: SubgroupId, client: ClientId) {
        let _ = (subgroup, client);
    }

    /// Reports that more messages of a logged subgroup have become durable. The counts include all
    /// messages since the group began.
    fn durable_changed(&mut self, subgroup: SubgroupId, durable: &DurableCounts) {
        let _ = (subgroup, durable);
    }

    /// Reports that this member has ended, also if it ended because another call panicked. This is
    /// the last call. The fates of all receipts are final. A process that fails to start receives
    /// no such call.
    fn ended(&mut self, why: &Stopped) {
        let _ = why;
    }

    /// Returns the current state of a subgroup, for a joining node (VIE-10), for a log, or for a
    /// client that follows the subgroup. The state is read in another thread while the group
    /// continues, so this call must copy everything that may change.
    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        let _ = subgroup;
        Box::new(io::empty())
    }

    /// Restores the state of a subgroup, replacing any existing state, because an interrupted join
    /// restarts from the beginning. The state may be empty, which means the initial state, before
    /// any message. This occurs in a logged subgroup, in a reserved one, and in any subgroup that
    /// loses all its members while this node is receiving their state.
    ///
    /// # Errors
    /// Fails if the state is invalid; the member then does not start.
    fn restore(&mut self, subgroup: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        let _ = subgroup;
        io::copy(state, &mut io::sink()).map(|_| ())
    }
}

impl<F: FnMut(&mut Messages<'_, '_>) + Send> Application for F {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        self(messages);
    }
}

impl Application for Box<dyn Application> {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        (**self).deliver(messages);
    }

    fn exchange_large(
        &mut self,
        subgroup: SubgroupId,
        buffer: Buffer,
        bytes: usize,
    ) -> Option<Buffer> {
        (**self).exchange_large(subgroup, buffer, bytes)
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        (**self).view_changed(change);
    }

    fn client_forgotten(&mut self, subgroup: SubgroupId, client: ClientId) {
        (**self).client_forgotten(subgroup, client);
    }

    fn durable_changed(&mut self, subgroup: SubgroupId, durable: &DurableCounts) {
        (**self).durable_changed(subgroup, durable);
    }

    fn ended(&mut self, why: &Stopped) {
        (**self).ended(why);
    }

    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        (**self).snapshot(subgroup)
    }

    fn restore(&mut self, subgroup: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        (**self).restore(subgroup, state)
    }
}
