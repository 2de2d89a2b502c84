//! What an application is to its group: it is handed messages, told of views, and asked for its
//! state.

use std::io;
use std::io::Read;

use tramontane_control::client_messages::ClientId;
use tramontane_core::ids::SubgroupId;
use tramontane_core::node::DurableCounts;

use super::message::ViewChanged;
use super::messages::Messages;
use crate::block_transfer::buffer::Buffer;

/// An application whose state all members of its subgroups have alike, since all are handed the
/// same messages in the same order.
///
/// A closure over [`Messages`] is one too: it has no state that a joiner would need.
///
/// # What is guaranteed
/// - Calls come one at a time, from the thread that drives the member. A panic stops the member
///   (DEL-2).
/// - Between two calls of [`Replica::view_changed`], members that are told of both views are handed
///   the same messages (VIE-8), each once, in one order for each subgroup (ORD-2).
/// - [`Replica::snapshot`] is called between two messages, and everything handed over after it is
///   not part of it.
///
/// No call may take longer than the group's failure timeout: the others would take this member for
/// dead (VIE-2). Any number of calls in a row may each take as long.
pub trait Replica: Send {
    /// Messages of one subgroup that became stable. They count as handed over when this returns,
    /// taken or not.
    fn deliver(&mut self, messages: &mut Messages<'_, '_>);

    /// The buffer of a large message of another member, of `bytes` bytes, which was delivered just
    /// before: called once for each, in their order. An application that needs the bytes for
    /// longer keeps the buffer instead of a copy. It gives one back that it needs no more, if it
    /// has one: it is used for what comes next, and without it memory is made.
    fn exchange_large(
        &mut self,
        subgroup: SubgroupId,
        buffer: Buffer,
        bytes: usize,
    ) -> Option<Buffer> {
        let _ = (subgroup, bytes);
        Some(buffer)
    }

    /// A view was installed. Messages that come from now on belong to it.
    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        let _ = change;
    }

    /// The group has forgotten a client from outside: it has ended, or its lease has (EXT-1). All
    /// members are told between the same messages. A client that comes later with the same id is
    /// another one.
    fn client_forgotten(&mut self, subgroup: SubgroupId, client: ClientId) {
        let _ = (subgroup, client);
    }

    /// More of a logged subgroup is durable than was said before: so many of its messages since the
    /// group began.
    fn durable_changed(&mut self, subgroup: SubgroupId, durable: &DurableCounts) {
        let _ = (subgroup, durable);
    }

    /// The state of a subgroup as it is now, for a node that joins (VIE-10), for a log, or for a
    /// client that follows the subgroup. It is read in another thread while the group goes on:
    /// whatever must be copied is copied before this returns.
    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        let _ = subgroup;
        Box::new(io::empty())
    }

    /// Takes over the state of a subgroup, instead of whatever it holds: a join that was broken off
    /// begins again. It may have no bytes: then it is the state of the beginning, before any
    /// message. That comes in a logged subgroup, in a reserved one, and in any whose members are
    /// all lost while this node takes over their state.
    ///
    /// # Errors
    /// If the state makes no sense: this member does not start then.
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
