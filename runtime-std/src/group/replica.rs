//! What an application is to its group: it is handed messages, told of views, and asked for its
//! state.

use std::io::{self, Read};

use tramontane_control::client_messages::ClientId;
use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};
use tramontane_core::multicast::Batch;
use tramontane_core::node::DurableCounts;

use super::clients::{SubgroupOrder, Taken};
use super::large::Large;
use super::view::View;
use crate::blocks::Buffer;

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

/// A view that was installed.
#[derive(Clone, Copy, Debug)]
pub struct ViewChanged<'a> {
    /// The view.
    pub view: &'a View,
    /// The own node.
    pub own: NodeId,
    /// The nodes that joined.
    pub joined: &'a [NodeId],
    /// The nodes that left, or were lost.
    pub gone: &'a [NodeId],
}

/// A message, lent until the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// The view that it was delivered in.
    pub view: ViewId,
    /// Its place in the view's delivery order of the subgroup: rises, and is the same at all
    /// members.
    pub place: Place,
    /// The member that sent it.
    pub sender: NodeId,
    /// The bytes. They may be none. They lie where the sender writes: an application that does not
    /// trust all members copies them before it validates them, and uses the copy.
    pub payload: &'a [u8],
    /// The client from outside that published it, if the subgroup takes clients (EXT-1): `sender`
    /// is the member that it was at. None if the member sent it itself.
    pub client: Option<ClientId>,
    /// It came as a large message.
    pub is_large: bool,
    /// It was delivered before this member joined, and after the state that it took over.
    pub is_replayed: bool,
}

/// Where messages come from.
enum Source<'b, 'a> {
    /// A step, where there is nothing else to look at.
    Plain {
        batch: &'b mut Batch<'a>,
        view: &'b View,
    },
    /// A step, where there may be large messages or joiners.
    Live {
        batch: &'b mut Batch<'a>,
        view: &'b View,
        large: &'b Large,
    },
    Replayed(Option<Message<'a>>),
    /// What another one has, without what is not for the application.
    Ordered {
        sent: &'b mut (dyn Sent<'b> + 'b),
        order: &'b mut SubgroupOrder,
    },
}

/// Messages as they were sent, where there may be clients.
trait Sent<'s> {
    /// The next one, which the tap has not seen.
    fn next_sent(&mut self) -> Option<Message<'s>>;

    /// It is no duplicate: the tap sees it.
    fn keep(&mut self, sent: &Message<'_>);
}

impl<'s, 'b: 's> Sent<'s> for Messages<'b, '_> {
    fn next_sent(&mut self) -> Option<Message<'s>> {
        self.next_untapped()
    }

    fn keep(&mut self, sent: &Message<'_>) {
        if let Some(tap) = &mut self.tap {
            tap(sent);
        }
    }
}

/// Messages of one subgroup, in their order.
pub struct Messages<'b, 'a> {
    subgroup: SubgroupId,
    source: Source<'b, 'a>,
    tap: Option<&'b mut dyn FnMut(&Message<'_>)>,
}

impl<'b, 'a> Messages<'b, 'a> {
    /// What a step delivers, none of it large.
    #[inline]
    pub(super) fn plain(batch: &'b mut Batch<'a>, view: &'b View) -> Self {
        Self { subgroup: batch.subgroup(), source: Source::Plain { batch, view }, tap: None }
    }

    /// What a step delivers. `tap` sees every message once, taken or not, if [`Messages::finish`]
    /// is called.
    pub(super) fn live(
        batch: &'b mut Batch<'a>,
        view: &'b View,
        large: &'b Large,
        tap: Option<&'b mut dyn FnMut(&Message<'_>)>,
    ) -> Self {
        Self { subgroup: batch.subgroup(), source: Source::Live { batch, view, large }, tap }
    }

    /// One message that was delivered before this member was there.
    pub(super) fn replayed(message: Message<'a>) -> Self {
        Self { subgroup: message.subgroup, source: Source::Replayed(Some(message)), tap: None }
    }

    /// Those of `sent` that are for the application, in a subgroup that takes clients.
    pub(super) fn ordered<'s: 'b>(
        sent: &'b mut Messages<'s, '_>,
        order: &'b mut SubgroupOrder,
    ) -> Self {
        Self { subgroup: sent.subgroup, source: Source::Ordered { sent, order }, tap: None }
    }

    /// The subgroup that all of them belong to.
    #[must_use]
    pub const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// Passes over what is left.
    pub(super) fn finish(mut self) {
        if self.tap.is_some() || matches!(self.source, Source::Ordered { .. }) {
            while self.next().is_some() {}
        }
    }
}

impl<'b> Iterator for Messages<'b, '_> {
    type Item = Message<'b>;

    #[inline]
    fn next(&mut self) -> Option<Message<'b>> {
        if let Source::Plain { batch, view } = &mut self.source {
            let message = batch.next()?;
            return Some(message_of(self.subgroup, view, &message, message.payload));
        }
        // Taken apart: a message that a call hands back lies in memory, and the usual one need not.
        let Message { subgroup, view, place, sender, payload, client, is_large, is_replayed } =
            self.next_of_any()?;
        Some(Message { subgroup, view, place, sender, payload, client, is_large, is_replayed })
    }
}

impl<'b> Messages<'b, '_> {
    fn next_of_any(&mut self) -> Option<Message<'b>> {
        let message = self.next_untapped()?;
        if let Some(tap) = &mut self.tap {
            tap(&message);
        }
        Some(message)
    }

    fn next_untapped(&mut self) -> Option<Message<'b>> {
        Some(match &mut self.source {
            Source::Replayed(message) => message.take()?,
            Source::Plain { batch, view } => {
                let message = batch.next()?;
                message_of(self.subgroup, view, &message, message.payload)
            }
            Source::Ordered { sent, order } => loop {
                // The application hears of that first.
                if order.has_forgotten() {
                    return None;
                }
                let raw = sent.next_sent()?;
                match order.take(&raw) {
                    Taken::Duplicate => {}
                    Taken::Word => sent.keep(&raw),
                    Taken::Message(message) => {
                        sent.keep(&raw);
                        break message;
                    }
                }
            },
            Source::Live { large, .. } if large.is_mistold() => return None,
            Source::Live { batch, view, large } => {
                let message = batch.next()?;
                let payload = match message.large {
                    None => message.payload,
                    Some(number) => {
                        large.payload(self.subgroup, message.rank, number, message.payload)?
                    }
                };
                message_of(self.subgroup, view, &message, payload)
            }
        })
    }
}

/// A message of a view, as the application sees it.
#[inline]
fn message_of<'b>(
    subgroup: SubgroupId,
    view: &View,
    message: &tramontane_core::multicast::Message<'_>,
    payload: &'b [u8],
) -> Message<'b> {
    Message {
        subgroup,
        view: view.id,
        place: message.place,
        // A rank of the view has a node.
        sender: view.members.get(message.rank.index()).copied().unwrap_or_default(),
        payload,
        client: None,
        is_large: message.large.is_some(),
        is_replayed: false,
    }
}

impl std::fmt::Debug for Messages<'_, '_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Messages").field("subgroup", &self.subgroup).finish_non_exhaustive()
    }
}
