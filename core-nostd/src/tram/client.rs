//! A client: it is no replica, and multicasts to sets of groups.
//!
//! A message goes to all replicas of the lowest group that reaches its destinations, each in a ring
//! of its own. A leader that fails leaves the message with the others, so the client sends nothing
//! twice. Replicas of the destinations reply when they deliver.
//!
//! Messages with the same lowest common ancestor are delivered in the order in which they were
//! multicast. There is no such order between messages with different ones, unless the client waits
//! for the answer to the first (TRM-7).
//!
//! # Invariants
//! - At most a window of messages is unanswered, and each has a slot of lent memory until then.
//! - An ordinal is never given to two messages.
//!
//! Source: TRAM, section 5.2 (Algorithm 1).

use super::deliver::Reply;
use super::entry::MessageId;
use super::feed::{Fed, Payload, Ring};
use super::link::{Attached, Attachment, LinkId, Memory, Stage};
use super::overlay::{Destinations, Overlay, ReplicaId};
use super::posting::Posting;
use super::progress::{Halt, OpenError, Progress};
use super::replica::put;
use super::shape::{Shape, feed_row, modulo, taken_row};
use crate::fabric::{Area, Capabilities, Event, Fabric, Promises, Region};
use crate::ids::{ClientNumber, GroupId, Ordinal, Rank, Time, ViewId, index_from_u32};
use crate::layout::CACHE_LINE;

/// Whose answers a client waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Answers {
    /// Of one replica of each destination.
    #[default]
    OneOfEach,
    /// Of the leader of each destination.
    Leaders,
    /// Of all replicas of all destinations that are connected.
    All,
}

/// What a client is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Its number.
    pub number: ClientNumber,
    /// Which start of this client it is: higher than any before under this number.
    pub incarnation: u32,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum SendError {
    /// A window of messages is unanswered. Try again after the next answer.
    Full = 1,
    /// The message is longer than the overlay's limit.
    TooLong = 2,
    /// There is no destination.
    NoDestination = 3,
    /// A destination is no group of the overlay.
    UnknownDestination = 4,
    /// The groups have closed this client's place, or it is about to leave.
    Closed = 5,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Full => "a window of messages is unanswered: try again after the next answer",
            Self::TooLong => "the message is longer than the overlay's limit",
            Self::NoDestination => "a message needs a destination",
            Self::UnknownDestination => "a destination is no group of the overlay",
            Self::Closed => "this client's place is closed",
        })
    }
}

impl core::error::Error for SendError {}

/// A message whose answers have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What names it.
    pub id: MessageId,
    /// The groups that it was for.
    pub destinations: Destinations,
}

/// What a client keeps of one group: a list of these is lent to it, one a group.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupState {
    /// The ordinal of the next message that is ordered there first.
    next: Ordinal,
    shape: Option<Shape>,
    /// While answers are looked for: groups that have delivered nothing of what is ordered here
    /// first, from the message on that was looked at.
    silent: Destinations,
}

/// What a client keeps of one message that is under way: a list of these is lent to it, one for
/// each message of the window.
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

/// What a group has answered to a message.
enum Answer {
    /// Nobody has delivered it, as far as is known.
    Silence,
    /// Somebody has, and that is not enough.
    Some,
    Enough,
}

/// What a client keeps of one link: a list of these is lent to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientLink {
    replica: Option<ReplicaId>,
    attached: Attached,
    stored: Ordinal,
    posted: Ordinal,
    /// The number from which on the next message to be stored is.
    number: u64,
}

/// Which links a client has, by their places.
#[derive(Clone, Copy, Debug)]
pub struct ClientLinks<'o> {
    overlay: &'o Overlay,
}

impl<'o> ClientLinks<'o> {
    /// The links of an overlay's clients.
    #[must_use]
    pub const fn of(overlay: &'o Overlay) -> Self {
        Self { overlay }
    }

    /// How many links.
    #[must_use]
    pub fn len(&self) -> usize {
        let groups = self.overlay.all().iter();
        let replicas = groups.map(|group| usize::from(self.overlay.replicas(group)));
        replicas.fold(0, usize::saturating_add)
    }

    /// Never: an overlay has a replica.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the link to a replica is in the list.
    #[must_use]
    pub fn find(&self, replica: ReplicaId) -> Option<LinkId> {
        let first = self.first(replica.group);
        let is_there = replica.rank.0 < self.overlay.replicas(replica.group);
        is_there.then(|| LinkId(first.saturating_add(replica.rank.0)))
    }

    /// Whose link is at a place.
    #[must_use]
    pub fn replica(&self, link: LinkId) -> Option<ReplicaId> {
        let mut rest = link.0;
        for group in self.overlay.all().iter() {
            let replicas = self.overlay.replicas(group);
            if rest < replicas {
                return Some(ReplicaId { group, rank: Rank(rest) });
            }
            rest = rest.saturating_sub(replicas);
        }
        None
    }

    fn first(&self, group: GroupId) -> u16 {
        let before = self.overlay.all().iter().take_while(|other| *other != group);
        before.fold(0, |first: u16, other| first.saturating_add(self.overlay.replicas(other)))
    }

    fn of_group(&self, group: GroupId) -> impl Iterator<Item = LinkId> + use<> {
        let first = self.first(group);
        (first..first.saturating_add(self.overlay.replicas(group))).map(LinkId)
    }
}

/// A client of an overlay.
#[derive(Debug)]
pub struct Client<'s> {
    overlay: &'s Overlay,
    options: ClientOptions,
    capabilities: Capabilities,
    links: ClientLinks<'s>,
    state: &'s mut [ClientLink],
    groups: &'s mut [GroupState],
    messages: &'s mut [MessageState],
    /// Payloads of the messages under way, one after the other.
    payloads: &'s mut [u8],
    /// The number of the next message.
    next: u64,
    /// All messages below have been answered, and given to the caller.
    released: u64,
    /// All messages from here on are for the same groups.
    alike_from: u64,
    /// How many messages are answered, and not given to the caller yet.
    answered: u64,
    is_leaving: bool,
    is_closed: bool,
    progress: Progress,
}

impl<'s> Client<'s> {
    /// A client over lent state: one [`ClientLink`] a replica of the overlay, one [`GroupState`] a
    /// group, one [`MessageState`] for each message of the client's window, and room for as many
    /// payloads of the greatest length.
    ///
    /// # Errors
    /// The number is not below the overlay's limit, the lent state is too small, or the fabric
    /// lacks a promise that the protocol stands on.
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
        for (index, link) in state.iter_mut().enumerate() {
            let replica = u16::try_from(index).ok().and_then(|link| links.replica(LinkId(link)));
            *link = ClientLink { replica, ..ClientLink::default() };
        }
        for (group, state) in overlay.all().iter().zip(groups.iter_mut()) {
            *state = GroupState { shape: Some(Shape::of(overlay, group)), ..GroupState::default() };
        }
        messages.fill(MessageState::default());
        Ok(Self {
            overlay,
            options,
            capabilities,
            links,
            state,
            groups,
            messages,
            payloads,
            next: 0,
            released: 0,
            alike_from: 0,
            answered: 0,
            is_leaving: false,
            is_closed: false,
            progress: Progress::default(),
        })
    }

    /// Takes a view with a replica into use.
    ///
    /// # Errors
    /// The memory does not fit.
    pub fn attach<M: Memory>(
        &mut self,
        now: Time,
        link: LinkId,
        attachment: Attachment,
        memory: &M,
    ) -> Result<(), Halt> {
        let leaving = u64::from(self.is_leaving);
        let Some(state) = self.state.get_mut(link.index()) else { return Ok(()) };
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
            let standing = (u64::from(self.options.incarnation) << 1) | leaving;
            put(row, feed_row::STANDING, standing)?;
        }
        Ok(())
    }

    /// Gives up a view with a replica.
    pub fn detach(&mut self, link: LinkId) {
        if let Some(state) = self.state.get_mut(link.index()) {
            *state = ClientLink { replica: state.replica, ..ClientLink::default() };
        }
    }

    /// How far a link is.
    #[must_use]
    pub fn stage(&self, link: LinkId) -> Stage {
        self.state.get(link.index()).map_or(Stage::Absent, |state| state.attached.stage)
    }

    /// Its links.
    #[must_use]
    pub const fn links(&self) -> ClientLinks<'s> {
        self.links
    }

    /// How many messages are unanswered, or answered and not given to the caller yet.
    #[must_use]
    pub const fn under_way(&self) -> u64 {
        self.next.saturating_sub(self.released)
    }

    /// Whether the groups have closed this client's place: it was away for longer than the lease,
    /// or another client has its number.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Takes a message for a set of groups. The next step sends it.
    ///
    /// # Errors
    /// See [`SendError`]. Nothing was sent then.
    pub fn multicast(
        &mut self,
        destinations: Destinations,
        payload: &[u8],
        answers: Answers,
    ) -> Result<MessageId, SendError> {
        if self.is_leaving || self.is_closed {
            return Err(SendError::Closed);
        }
        if destinations == Destinations::default() {
            return Err(SendError::NoDestination);
        }
        let first = self
            .overlay
            .lowest_common_ancestor(destinations)
            .ok_or(SendError::UnknownDestination)?;
        let limits = self.overlay.limits();
        let length = u32::try_from(payload.len()).map_err(|_| SendError::TooLong)?;
        if length > limits.payload_max {
            return Err(SendError::TooLong);
        }
        let window = u64::from(limits.client_window);
        if self.under_way() >= window {
            return Err(SendError::Full);
        }
        let number = self.next;
        let index = modulo(number, limits.client_window);
        let ordinal = self.groups.get(first.index()).map_or(Ordinal::ZERO, |group| group.next);
        self.payload_mut(index, length).ok_or(SendError::TooLong)?.copy_from_slice(payload);
        let last = modulo(number.saturating_sub(1), limits.client_window);
        if self.messages.get(last).is_none_or(|last| last.destinations != destinations) {
            self.alike_from = number;
        }
        let Some(message) = self.messages.get_mut(index) else { return Err(SendError::Full) };
        *message = MessageState {
            number,
            is_used: true,
            is_answered: false,
            first,
            ordinal,
            destinations,
            waiting: destinations,
            length,
            answers,
        };
        if let Some(group) = self.groups.get_mut(first.index()) {
            group.next = ordinal.next();
        }
        self.next = number.saturating_add(1);
        Ok(self.id_of(number))
    }

    /// Sends what was taken, and looks for answers.
    ///
    /// # Errors
    /// The memory does not fit.
    pub fn step<F: Fabric, M: Memory>(
        &mut self,
        now: Time,
        fabric: &mut F,
        memory: &M,
    ) -> Result<Progress, Halt> {
        self.progress = Progress::default();
        self.take_events(now, fabric);
        for index in 0..self.links.len() {
            let Ok(link) = u16::try_from(index).map(LinkId) else { break };
            let Some(attached) = self.state.get_mut(index).map(|state| &mut state.attached) else {
                break;
            };
            if attached.stage == Stage::Waiting && fabric.ready(attached.view, attached.peer) {
                attached.stage = Stage::Ready;
            }
            if attached.is_ready() {
                self.store(link, memory)?;
                self.post(link, fabric, memory)?;
            }
        }
        self.look_for_answers(memory)?;
        Ok(self.progress)
    }

    /// The oldest message whose answers have come, if it was not given yet. Its replies can be
    /// looked at with [`Client::replies`] until the next call.
    pub fn poll(&mut self) -> Option<Answered> {
        let limits = self.overlay.limits();
        self.answered = self.answered.checked_sub(1)?;
        for number in self.released..self.next {
            let index = modulo(number, limits.client_window);
            let Some(message) = self.messages.get_mut(index) else { break };
            if message.is_used && message.is_answered {
                message.is_used = false;
                let destinations = message.destinations;
                self.release();
                return Some(Answered { id: self.id_of(number), destinations });
            }
        }
        None
    }

    /// Calls with each reply to a message that is there: which replica has delivered it, what it
    /// answered, and whether it leads its group now.
    pub fn replies<M: Memory>(
        &self,
        answered: &Answered,
        memory: &M,
        mut each: impl FnMut(ReplicaId, u8, bool),
    ) {
        for group in answered.destinations.iter() {
            for link in self.links.of_group(group) {
                let reply = self.reply(link, answered.id.number, memory);
                let is_to_it = |reply: &Reply| reply.number == answered.id.number;
                let reply = reply.ok().flatten().filter(is_to_it);
                if let (Some(reply), Some(replica)) = (reply, self.links.replica(link)) {
                    let leads = self.leads(link, memory).unwrap_or(false);
                    each(replica, reply.answer, leads);
                }
            }
        }
    }

    /// Says that no more messages come. The groups close this client's place once they have taken
    /// those that are under way.
    ///
    /// # Errors
    /// The memory does not fit.
    pub fn leave<M: Memory>(&mut self, memory: &M) -> Result<(), Halt> {
        self.is_leaving = true;
        for (index, state) in self.state.iter_mut().enumerate() {
            let Ok(link) = u16::try_from(index).map(LinkId) else { break };
            if let Some((row, _)) = memory.link(link) {
                let standing = (u64::from(self.options.incarnation) << 1) | 1;
                put(row, feed_row::STANDING, standing)?;
                state.attached.dirty = true;
            }
        }
        Ok(())
    }

    /// Whether each group that has opened this client's place shows that it is closed again.
    ///
    /// # Errors
    /// The memory does not fit.
    pub fn has_left<M: Memory>(&self, memory: &M) -> Result<bool, Halt> {
        for index in 0..self.links.len() {
            let Ok(link) = u16::try_from(index).map(LinkId) else { break };
            let Some((_, theirs)) = memory.link(link) else { continue };
            let opened = theirs.cell(taken_row::OPENED)?.load();
            if self.stage(link) == Stage::Ready && opened & 1 == 1 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn id_of(&self, number: u64) -> MessageId {
        let ClientOptions { number: client, incarnation } = self.options;
        MessageId { client, incarnation, number }
    }

    fn release(&mut self) {
        let window = self.overlay.limits().client_window;
        for _ in 0..window {
            let index = modulo(self.released, window);
            let is_free = self.messages.get(index).is_some_and(|message| !message.is_used);
            if self.released >= self.next || !is_free {
                break;
            }
            self.released = self.released.saturating_add(1);
        }
    }

    fn payload_mut(&mut self, index: usize, length: u32) -> Option<&mut [u8]> {
        let room = index_from_u32(self.overlay.limits().payload_max);
        let from = index.checked_mul(room)?;
        self.payloads.get_mut(from..from.checked_add(index_from_u32(length))?)
    }

    fn take_events<F: Fabric>(&mut self, now: Time, fabric: &mut F) {
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
        for state in self.state.iter_mut() {
            if state.attached.view == view && state.attached.stage != Stage::Absent {
                state.attached.stage = Stage::Lost;
                state.attached.since = now;
                self.progress.lost = self.progress.lost.saturating_add(1);
            }
        }
    }

    /// Stores in one replica's ring what it has room for.
    fn store<M: Memory>(&mut self, link: LinkId, memory: &M) -> Result<(), Halt> {
        let Some(mut state) = self.state.get(link.index()).copied() else { return Ok(()) };
        let Some(replica) = state.replica else { return Ok(()) };
        let Some(group) = self.groups.get(replica.group.index()).copied() else { return Ok(()) };
        let (next, Some(shape)) = (group.next, group.shape) else { return Ok(()) };
        if state.stored >= next {
            return Ok(());
        }
        let Some((row, theirs)) = memory.link(link) else { return Ok(()) };
        let window = shape.client_window();
        let taken = self.taken(theirs)?;
        if taken > state.stored {
            state.stored = taken;
            state.posted = state.posted.max(taken);
        }
        let limit = taken.0.saturating_add(u64::from(window));
        for _ in 0..window {
            if state.stored >= next || state.stored.0 >= limit {
                break;
            }
            self.store_one(replica.group, &mut state, row, &shape)?;
            state.stored = state.stored.next();
        }
        if let Some(place) = self.state.get_mut(link.index()) {
            *place = state;
        }
        Ok(())
    }

    /// Stores one message. One that was answered already is left out: its group has it.
    fn store_one(
        &mut self,
        group: GroupId,
        state: &mut ClientLink,
        row: crate::memory::RowWriter<'_>,
        shape: &Shape,
    ) -> Result<(), Halt> {
        let ordinal = state.stored;
        let Some(index) = self.find(group, state) else { return Ok(()) };
        let Some(message) = self.messages.get(index).copied() else { return Ok(()) };
        let fed = Fed {
            id: self.id_of(message.number),
            destinations: message.destinations,
            length: message.length,
        };
        let ring = Ring::of_client(shape);
        let room = index_from_u32(self.overlay.limits().payload_max);
        let from = index.saturating_mul(room);
        let to = from.saturating_add(index_from_u32(message.length));
        let bytes = self.payloads.get(from..to).unwrap_or(&[]);
        ring.store(row, ordinal, &fed, Payload::Bytes(bytes))?;
        self.progress.passed_on = self.progress.passed_on.saturating_add(1);
        self.progress.copied_bytes =
            self.progress.copied_bytes.saturating_add(u64::from(message.length));
        Ok(())
    }

    /// The place of the message that is stored next for a replica, if it is not answered yet: those
    /// of one group have rising ordinals.
    fn find(&self, group: GroupId, state: &mut ClientLink) -> Option<usize> {
        for number in state.number.max(self.released)..self.next {
            let index = modulo(number, self.overlay.limits().client_window);
            let message = self.messages.get(index)?;
            if message.first == group && message.ordinal >= state.stored {
                state.number = number;
                return (message.is_used && message.ordinal == state.stored).then_some(index);
            }
        }
        None
    }

    /// How many of this client's messages a replica has taken.
    fn taken(&self, theirs: crate::memory::Row<'_>) -> Result<Ordinal, Halt> {
        let opened = theirs.cell(taken_row::OPENED)?.load();
        if opened >> 1 != u64::from(self.options.incarnation) {
            return Ok(Ordinal::ZERO);
        }
        Ok(Ordinal(theirs.cell(taken_row::TAKEN)?.load()))
    }

    fn post<F: Fabric, M: Memory>(
        &mut self,
        link: LinkId,
        fabric: &mut F,
        memory: &M,
    ) -> Result<(), Halt> {
        let Some((row, theirs)) = memory.link(link) else { return Ok(()) };
        self.notice_closing(theirs)?;
        let replica = self.state.get(link.index()).and_then(|state| state.replica);
        let group = replica.and_then(|replica| self.groups.get(replica.group.index()));
        let Some(shape) = group.and_then(|group| group.shape) else { return Ok(()) };
        let ring = Ring::of_client(&shape);
        for _ in 0..shape.client_window() {
            let Some(state) = self.state.get(link.index()).copied() else { break };
            if state.posted >= state.stored && !state.attached.dirty {
                break;
            }
            let mut posting = Posting::new(&self.capabilities);
            if state.attached.dirty {
                let area = Area { region: Region::ROW, offset: feed_row::STANDING };
                posting.content(area, area, 8);
            }
            let to = ring.post(row, &mut posting, state.posted, state.stored)?;
            let attached = state.attached;
            if fabric.post(attached.view, attached.peer, posting.writes(), None).is_err() {
                break;
            }
            self.progress.lists = self.progress.lists.saturating_add(1);
            let writes = u32::try_from(posting.writes().len()).unwrap_or(u32::MAX);
            self.progress.writes = self.progress.writes.saturating_add(writes);
            if let Some(state) = self.state.get_mut(link.index()) {
                state.posted = to;
                state.attached.dirty = false;
            }
        }
        Ok(())
    }

    fn notice_closing(&mut self, theirs: crate::memory::Row<'_>) -> Result<(), Halt> {
        let opened = theirs.cell(taken_row::OPENED)?.load();
        let incarnation = opened >> 1;
        let own = u64::from(self.options.incarnation);
        let is_over = incarnation == own && opened & 1 == 0;
        if (is_over && !self.is_leaving) || incarnation > own {
            self.is_closed = true;
        }
        Ok(())
    }

    /// Looks from the oldest message on. Messages that are ordered first at the same group are
    /// delivered in their order: where nobody has replied to one, nobody has to a later one.
    fn look_for_answers<M: Memory>(&mut self, memory: &M) -> Result<(), Halt> {
        for group in self.groups.iter_mut() {
            group.silent = Destinations::default();
        }
        for number in self.released..self.next {
            let index = modulo(number, self.overlay.limits().client_window);
            let Some(message) = self.messages.get(index) else { break };
            if message.is_answered {
                continue;
            }
            let silent = self.look_for_answers_to(index, memory)?;
            let is_silent = self.messages.get(index).is_some_and(|message| {
                message.waiting == message.destinations && message.waiting.0 & !silent.0 == 0
            });
            if is_silent && number >= self.alike_from {
                break;
            }
        }
        Ok(())
    }

    /// Looks for the answers to one message. Gives the groups of which nobody has replied to it, or
    /// to an earlier one that was ordered first at the same group.
    fn look_for_answers_to<M: Memory>(
        &mut self,
        index: usize,
        memory: &M,
    ) -> Result<Destinations, Halt> {
        let Some(message) = self.messages.get(index).copied() else {
            return Ok(Destinations::default());
        };
        let first = message.first.index();
        let mut silent = self.groups.get(first).map_or(Destinations::default(), |of| of.silent);
        let mut waiting = message.waiting;
        for group in Destinations(message.waiting.0 & !silent.0).iter() {
            match self.answer_of(&message, group, memory)? {
                Answer::Silence => silent = silent.with(group),
                Answer::Some => {}
                Answer::Enough => {
                    waiting = Destinations(waiting.0 & !Destinations::of(group).0);
                }
            }
        }
        if let Some(group) = self.groups.get_mut(first) {
            group.silent = silent;
        }
        if let Some(message) = self.messages.get_mut(index) {
            message.waiting = waiting;
            message.is_answered = waiting == Destinations::default();
            self.answered = self.answered.saturating_add(u64::from(message.is_answered));
        }
        Ok(silent)
    }

    fn answer_of<M: Memory>(
        &mut self,
        message: &MessageState,
        group: GroupId,
        memory: &M,
    ) -> Result<Answer, Halt> {
        let (mut replied, mut some, mut all) = (false, false, true);
        for link in self.links.of_group(group) {
            self.progress.looked = self.progress.looked.saturating_add(1);
            let reply = self.reply(link, message.number, memory)?;
            match reply.filter(|reply| reply.number == message.number) {
                Some(_) => {
                    replied = true;
                    some =
                        some || message.answers != Answers::Leaders || self.leads(link, memory)?
                }
                None => all = all && self.stage(link) != Stage::Ready,
            }
        }
        let is_enough = match message.answers {
            Answers::All => some && all,
            Answers::OneOfEach | Answers::Leaders => some,
        };
        Ok(match (is_enough, replied) {
            (true, _) => Answer::Enough,
            (false, true) => Answer::Some,
            (false, false) => Answer::Silence,
        })
    }

    /// Whether a replica shows that it leads its group.
    fn leads<M: Memory>(&self, link: LinkId, memory: &M) -> Result<bool, Halt> {
        match memory.link(link) {
            None => Ok(false),
            Some((_, theirs)) => Ok(theirs.cell(taken_row::LEADS)?.load() == 1),
        }
    }

    fn reply<M: Memory>(
        &self,
        link: LinkId,
        number: u64,
        memory: &M,
    ) -> Result<Option<Reply>, Halt> {
        let Some((_, theirs)) = memory.link(link) else { return Ok(None) };
        let index = modulo(number, self.overlay.limits().client_window);
        let offset = taken_row::REPLIES.saturating_add(index.saturating_mul(8));
        Ok(Reply::from_cell(theirs.cell(offset)?.load()))
    }
}

/// The most events that a step takes.
const EVENTS_MAX: usize = 1024;

const _: () = assert!(feed_row::SLOTS == CACHE_LINE);
