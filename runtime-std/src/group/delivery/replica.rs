//! The interface between an application and its group: it receives messages and views, and is asked
//! for its state.

use std::io;
use std::io::Read;

use tramontane_control::client_messages::ClientId;
use tramontane_core::ids::SubgroupId;
use tramontane_core::node::DurableCounts;

use super::message::ViewChanged;
use super::messages::Messages;
use crate::block_transfer::buffer::Buffer;

/// An application with the same state at all members of its subgroups, because all receive the same
/// messages in the same order.
///
/// A closure over [`Messages`] is a replica too: one without any state that a joiner would need.
///
/// # What is guaranteed
/// - Calls come one at a time, from the thread that drives the member. A panic stops the member
///   (DEL-2).
/// - Members that receive two consecutive calls of [`Replica::view_changed`] for the same views
///   receive the same messages between them (VIE-8), each once, in one order per subgroup (ORD-2).
/// - [`Replica::snapshot`] is called between two messages; messages delivered after the call are
///   not part of the snapshot.
///
/// No call may take longer than the group's failure timeout, or the others consider this member
/// dead (VIE-2). Each of several calls in a row may take that long.
pub trait Replica: Send {
    /// Receives messages of one subgroup that became stable. They count as delivered when this
    /// returns, taken or not.
    fn deliver(&mut self, messages: &mut Messages<'_, '_>);

    /// Receives the buffer, of `bytes` bytes, of another member's large message that was delivered
    /// just before. Called once for each, in order. An application that needs the bytes for longer
    /// keeps the buffer instead of a copy. If it has a buffer that it no longer needs, it returns
    /// that one for reuse; otherwise new memory is allocated.
    fn exchange_large(
        &mut self,
        subgroup: SubgroupId,
        buffer: Buffer,
        bytes: usize,
    ) -> Option<Buffer> {
        let _ = (subgroup, bytes);
        Some(buffer)
    }

    /// Reports that a view was installed. Later messages belong to it.
    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        let _ = change;
    }

    /// Reports that the group has forgotten an external client: the client has ended, or its lease
    /// has (EXT-1). All members are told between the same messages. A later client with the same id
    /// is a different one.
    fn client_forgotten(&mut self, subgroup: SubgroupId, client: ClientId) {
        let _ = (subgroup, client);
    }

    /// Reports that more messages of a logged subgroup are durable. The counts include all messages
    /// since the group began.
    fn durable_changed(&mut self, subgroup: SubgroupId, durable: &DurableCounts) {
        let _ = (subgroup, durable);
    }

    /// Returns the present state of a subgroup, for a node that joins (VIE-10), for a log, or for a
    /// client that follows the subgroup. The state is read in another thread while the group
    /// continues, so everything that must be copied is copied before this returns.
    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        let _ = subgroup;
        Box::new(io::empty())
    }

    /// Takes over the state of a subgroup, replacing any state it has, because an interrupted join
    /// starts again. The state may be empty: that is the initial state, before any message. It
    /// occurs in a logged subgroup, in a reserved one, and in any subgroup that loses all its
    /// members while this node takes over their state.
    ///
    /// # Errors
    /// If the state is invalid; the member does not start then.
    fn restore(&mut self, subgroup: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        let _ = subgroup;
        io::copy(state, &mut io::sink()).map(|_| ())
    }
}

impl<F: FnMut(&mut Messages<'_, '_>) + Send> Replica for F {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        self(messages);
    }
}

impl Replica for Box<dyn Replica> {
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

    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        (**self).snapshot(subgroup)
    }

    fn restore(&mut self, subgroup: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        (**self).restore(subgroup, state)
    }
}
