//! A client: a process that is not a replica and multicasts messages to sets of groups.
//!
//! A message goes to all replicas of the lowest group that reaches all its destinations, into a
//! separate ring at each replica. If a leader fails, the other replicas still have the message, so
//! the client sends nothing twice. Replicas of the destinations reply when they deliver.
//!
//! Messages with the same lowest common ancestor are delivered in the order in which they were
//! multicast. There is no such order between messages with different ancestors, unless the client
//! waits for the answer to the first message (TRM-7).
//!
//! # Invariants
//! - At most a window of messages is unanswered. Each has a slot of lent memory until it is
//!   answered.
//! - An ordinal is never assigned to two messages.
//!
//! Source: TRAM, section 5.2 (Algorithm 1).

mod answers;
mod give;
mod links;
mod send;

pub use answers::{Answered, Answers};
pub use links::ClientLinks;
pub use send::SendError;

use super::entry::MessageId;
use super::link::put;
use super::link::{Attached, Attachment, LinkId, Memory, Stage};
use super::overlay::{Destinations, Overlay, ReplicaId};
use super::places::Places;
use super::progress::{Halt, OpenError, Progress};
use super::shape::{Shape, feed_row, taken_row};
use crate::fabric::{Capabilities, Event, Fabric, Promises};
use crate::ids::{ClientNumber, GroupId, Ordinal, Time, ViewId, index_from_u32};

/// The options of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Its number.
    pub number: ClientNumber,
    /// Incarnation of this client: higher than any earlier incarnation with the same number.
    pub incarnation: u32,
}

/// A client's state for one group. The caller lends one per group to the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupState {
    /// Ordinal of the next message that this group orders first.
    next: Ordinal,
    shape: Option<Shape>,
    /// During the search for answers: the groups that have delivered none of the messages that this
    /// group orders first, starting with the message just examined.
    silent: Destinations,
}

/// A client's state for one message in flight. The caller lends one per message of the window to
/// the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageState {
    number: u64,
    is_used: bool,
    is_answered: bool,
    first: GroupId,
    ordinal: Ordinal,
    destinations: Destinations,
    waiting: Destinations,
    length: u32,
    answers: Answers,
}

/// A client's state for one link. The caller lends one per link to the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientLink {
    replica: Option<ReplicaId>,
    attached: Attached,
    stored: Ordinal,
    posted: Ordinal,
    /// Number of the first message whose body has not been sent yet.
    given: u64,
    /// Number below which bodies will no longer come; `given_up_told` is the last such number that
    /// the replica was told.
    given_up: u64,
    given_up_told: u64,
    /// Lowest number that the next message to be stored can have.
    number: u64,
    /// Whether the replica has been told that nothing more will come. This notice follows
    /// everything that was multicast to it.
    shows_leaving: bool,
}

/// A client of an overlay.
#[derive(Debug)]
pub struct Client<'s> {
    overlay: &'s Overlay,
    options: ClientOptions,
    capabilities: Capabilities,
    links: ClientLinks<'s>,
    state: Places<'s, ClientLink>,
    groups: Places<'s, GroupState>,
    messages: Places<'s, MessageState>,
    /// Payloads of the messages in flight, stored consecutively.
    payloads: &'s mut [u8],
    /// Number of the next message.
    next: u64,
    /// All messages below this number have been answered and returned to the caller.
    released: u64,
    /// Number since which all messages are for the same groups.
    alike_from: u64,
    /// Number of messages that have been answered but not yet returned to the caller.
    answered: u64,
    is_leaving: bool,
    is_closed: bool,
    /// Number of body bytes sent in this step.
    given_bytes: u64,
    progress: Progress,
}

impl<'s> Client<'s> {
    /// Opens a client over lent state: one [`ClientLink`] per replica of the overlay, one
    /// [`GroupState`] per group, one [`MessageState`] per message of the client's window, and room
    /// for the same number of payloads of maximum length.
    ///
    /// # Errors
    /// Fails if the number is not below the overlay's limit, the lent state is too small, or the
    /// fabric lacks a promise that the protocol requires.
    pub fn open(
        overlay: &'s Overlay,
        options: ClientOptions,
        capabilities: Capabilities,
        state: &'s mut [ClientLink],
        groups: &'s mut [GroupState],
        messages: &'s mut [MessageState],
        payloads: &'s mut [u8],
    ) -> Result<Self, OpenError> {
        let limits = overlay.limits();
        if options.number.0 >= limits.clients || options.incarnation == 0 {
            return Err(OpenError::NoSuchReplica);
        }
        let links = ClientLinks::of(overlay);
        let window = index_from_u32(limits.client_window);
        let bytes = window.checked_mul(index_from_u32(limits.payload_max));
        let is_enough = state.len() >= links.len()
            && groups.len() >= overlay.len()
            && messages.len() == window
            && bytes.is_some_and(|bytes| payloads.len() >= bytes);
        if !is_enough {
            return Err(OpenError::StateTooSmall);
        }
        if !capabilities.promises.contains(Promises::WRITE_ORDER) {
            return Err(OpenError::FabricPromises);
        }
        // bound: the links
        for (index, link) in state.iter_mut().enumerate() {
            let replica = u16::try_from(index).ok().and_then(|link| links.replica(LinkId(link)));
            *link = ClientLink { replica, ..ClientLink::default() };
        }
        // bound: the groups of the overlay
        for (group, state) in overlay.all().iter().zip(groups.iter_mut()) {
            *state = GroupState { shape: Some(Shape::of(overlay, group)), ..GroupState::default() };
        }
        messages.fill(MessageState::default());
        Ok(Self {
            overlay,
            options,
            capabilities,
            links,
            state: Places::new(state),
            groups: Places::new(groups),
            messages: Places::new(messages),
            payloads,
            next: 0,
            released: 0,
            alike_from: 0,
            answered: 0,
            is_leaving: false,
            is_closed: false,
            given_bytes: 0,
            progress: Progress::default(),
        })
    }

    /// Starts to use a view with a replica.
    ///
    /// # Errors
    /// Fails if the memory does not fit.
    pub fn attach<M: Memory>(
        &mut self,
        now: Time,
        link: LinkId,
        attachment: Attachment,
        memory: &M,
    ) -> Result<(), Halt> {
        if self.links.replica(link).is_none() {
            return Ok(());
        }
        let state = self.state.at_mut(link);
        *state = ClientLink { replica: state.replica, ..ClientLink::default() };
        state.attached = Attached {
            stage: Stage::Waiting,
            view: attachment.view,
            peer: attachment.peer,
            incarnation: attachment.incarnation,
            since: now,
            dirty: true,
        };
        if let Some((row, _)) = memory.link(link) {
            put(row, feed_row::LEAVES, 0)?;
        }
        Ok(())
    }

    /// Gives up a view with a replica.
    pub fn detach(&mut self, link: LinkId) {
        let state = self.state.at_mut(link);
        *state = ClientLink { replica: state.replica, ..ClientLink::default() };
    }

    /// Returns the stage of a link.
    #[must_use]
    pub fn stage(&self, link: LinkId) -> Stage {
        self.state.at(link).attached.stage
    }

    /// Returns the client's links.
    #[must_use]
    pub const fn links(&self) -> ClientLinks<'s> {
        self.links
    }

    /// Returns the number of messages that are unanswered, or answered but not yet returned to the
    /// caller.
    #[must_use]
    pub const fn under_way(&self) -> u64 {
        self.next.saturating_sub(self.released)
    }

    /// Returns whether the groups have closed this client: it was disconnected for longer than the
    /// lease, or another client has its number.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Sends the accepted messages, and looks for answers.
    ///
    /// # Errors
    /// Fails if the memory does not fit.
    pub fn step<F: Fabric, M: Memory>(
        &mut self,
        now: Time,
        fabric: &mut F,
        memory: &M,
    ) -> Result<Progress, Halt> {
        self.progress = Progress::default();
        self.given_bytes = 0;
        self.take_events(now, fabric);
        // bound: the links
        for link in self.links_in_turn() {
            let attached = &mut self.state.at_mut(link).attached;
            if attached.stage == Stage::Waiting && fabric.ready(attached.view, attached.peer) {
                attached.stage = Stage::Ready;
            }
            if attached.is_ready() {
                self.give(link, fabric, memory)?;
                self.store(link, memory)?;
                self.post(link, fabric, memory)?;
            }
        }
        self.look_for_answers(memory)?;
        Ok(self.progress)
    }

    /// Returns all links, beginning with a different one for each client. If all clients began with
    /// the same replica, their long messages would wait for its port while the other replicas'
    /// ports were idle.
    fn links_in_turn(&self) -> impl Iterator<Item = LinkId> + use<> {
        let count = self.links.count();
        let before = u32::from(self.options.number.0).saturating_mul(u32::from(count));
        let first = before.checked_div(u32::from(self.overlay.limits().clients)).unwrap_or(0);
        let first = u16::try_from(first).unwrap_or(0).min(count);
        (first..count).chain(0..first).map(LinkId)
    }

    /// Announces that no more messages will come. Further steps still send the messages that have
    /// been multicast. The groups close this client once they have taken those messages.
    pub const fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Returns whether each group that orders this client's messages has taken them all and
    /// publishes that the client is closed. A group without a connected replica has published
    /// nothing.
    ///
    /// # Errors
    /// Fails if the memory does not fit.
    pub fn has_left<M: Memory>(&self, memory: &M) -> Result<bool, Halt> {
        // bound: the groups of the overlay
        for (group, state) in self.overlay.all().iter().zip(self.groups.iter()) {
            let mut is_closed = state.next == Ordinal::ZERO;
            // bound: the replicas of a group
            for link in self.links.of_group(group) {
                let Some((_, theirs)) = memory.link(link) else { continue };
                if self.stage(link) != Stage::Ready {
                    continue;
                }
                let opened = theirs.cell(taken_row::OPENED)?.load();
                let is_own = opened >> 1 == u64::from(self.options.incarnation);
                if is_own && opened & 1 == 1 {
                    return Ok(false);
                }
                is_closed |= opened >> 1 >= u64::from(self.options.incarnation);
            }
            if !is_closed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the replica at the other end of a link, the shape of its group, and the ordinal of
    /// the next message to it.
    fn other_end(&self, link: LinkId) -> Result<(ReplicaId, Shape, Ordinal), Halt> {
        let replica = self.state.at(link).replica.ok_or(Halt::OutOfRow)?;
        let group = self.groups.at(replica.group);
        Ok((replica, group.shape.ok_or(Halt::OutOfRow)?, group.next))
    }

    fn id_of(&self, number: u64) -> MessageId {
        let ClientOptions { number: client, incarnation } = self.options;
        MessageId { client, incarnation, number }
    }

    fn take_events<F: Fabric>(&mut self, now: Time, fabric: &mut F) {
        // bound: EVENTS_MAX
        for _ in 0..EVENTS_MAX {
            match fabric.poll() {
                None => break,
                Some(Event::PeerLost { view, .. }) => self.lose(now, view),
                Some(_) => {}
            }
            self.progress.events = self.progress.events.saturating_add(1);
        }
    }

    fn lose(&mut self, now: Time, view: ViewId) {
        // bound: the links
        for state in self.state.iter_mut() {
            if state.attached.view == view && state.attached.stage != Stage::Absent {
                state.attached.stage = Stage::Lost;
                state.attached.since = now;
                self.progress.lost = self.progress.lost.saturating_add(1);
            }
        }
    }

    fn notice_closing(&mut self, theirs: crate::memory::Row<'_>) -> Result<(), Halt> {
        let opened = theirs.cell(taken_row::OPENED)?.load();
        let incarnation = opened >> 1;
        let own = u64::from(self.options.incarnation);
        let is_over = incarnation == own && opened & 1 == 0;
        if incarnation > own || (is_over && !self.is_leaving) {
            self.is_closed = true;
        }
        Ok(())
    }
}

/// Maximum number of events taken in a step.
const EVENTS_MAX: usize = 1024;
