//! Sending of a client's messages: each is stored in the ring at every replica of the group that
//! orders it first.
//!
//! Requirement: TRM-7.

use super::{Answers, Client, ClientLink, MessageState};
use crate::fabric::{Area, Fabric, Region};
use crate::ids::{GroupId, Ordinal, index_from_u32};
use crate::layout::CACHE_LINE;
use crate::memory::{Row, RowWriter};
use crate::tram::entry::MessageId;
use crate::tram::feed::{Fed, Payload, Ring};
use crate::tram::link::put;
use crate::tram::link::{LinkId, Memory};
use crate::tram::overlay::Destinations;
use crate::tram::posting::Posting;
use crate::tram::progress::Halt;
use crate::tram::shape::{Shape, feed_row, modulo, taken_row};

/// Reason why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum SendError {
    /// A window of messages is unanswered. Retry after the next answer.
    Full = 1,
    /// The message is longer than the overlay's limit.
    TooLong = 2,
    /// There is no destination.
    NoDestination = 3,
    /// A destination is not a group of the overlay.
    UnknownDestination = 4,
    /// The groups have closed this client, or it is about to leave.
    Closed = 5,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Full => "a window of messages is unanswered; try again after the next answer",
            Self::TooLong => "the message is longer than the overlay's limit",
            Self::NoDestination => "the message has no destination",
            Self::UnknownDestination => "a destination is not a group of the overlay",
            Self::Closed => "this client is closed",
        })
    }
}

impl core::error::Error for SendError {}

impl Client<'_> {
    /// Accepts a message for a set of groups. The next step sends it.
    ///
    /// # Errors
    /// Fails as described at [`SendError`]. In that case nothing has been sent.
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
        let ordinal = self.groups.at(first).next;
        let place = self.payload_mut(index, length).ok_or(SendError::TooLong)?;
        // bound: the bytes of a message. The code does not use `copy_from_slice`, because with this
        // loop the compiler can prove at every optimisation level that nothing panics.
        for (to, from) in place.iter_mut().zip(payload) {
            *to = *from;
        }
        let last = modulo(number.saturating_sub(1), limits.client_window);
        if self.messages.at(last).destinations != destinations {
            self.alike_from = number;
        }
        *self.messages.at_mut(index) = MessageState {
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
        self.groups.at_mut(first).next = ordinal.next();
        self.next = number.saturating_add(1);
        Ok(self.id_of(number))
    }

    fn payload_mut(&mut self, index: usize, length: u32) -> Option<&mut [u8]> {
        let room = index_from_u32(self.overlay.limits().payload_max);
        let from = index.checked_mul(room)?;
        self.payloads.get_mut(from..from.checked_add(index_from_u32(length))?)
    }

    /// Stores the messages that one replica's ring has room for.
    pub(super) fn store<M: Memory>(&mut self, link: LinkId, memory: &M) -> Result<(), Halt> {
        let mut state = *self.state.at(link);
        let (replica, shape, next) = self.other_end(link)?;
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
        // bound: a window
        for _ in 0..window {
            if state.stored >= next || state.stored.0 >= limit {
                break;
            }
            if !self.store_one(replica.group, &mut state, row, &shape)? {
                break;
            }
            state.stored = state.stored.next();
        }
        *self.state.at_mut(link) = state;
        Ok(())
    }

    /// Stores one message. A message that has been answered is omitted, because its group has it.
    /// Returns false if the body of a reference must be sent first.
    fn store_one(
        &mut self,
        group: GroupId,
        state: &mut ClientLink,
        row: RowWriter<'_>,
        shape: &Shape,
    ) -> Result<bool, Halt> {
        let ordinal = state.stored;
        let Some(index) = self.find(group, state) else { return Ok(true) };
        let message = *self.messages.at(index);
        let is_reference = shape.is_reference(message.length);
        if is_reference && state.given <= message.number {
            return Ok(false);
        }
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
        let copied = if is_reference { 0 } else { u64::from(message.length) };
        let payload = if is_reference { Payload::Reference } else { Payload::Bytes(bytes) };
        ring.store(row, ordinal, &fed, payload)?;
        self.progress.passed_on = self.progress.passed_on.saturating_add(1);
        self.progress.copied_bytes = self.progress.copied_bytes.saturating_add(copied);
        Ok(true)
    }

    /// Returns the index of the next message to store for a replica, if that message has not been
    /// answered yet. The messages for one group have ascending ordinals.
    fn find(&self, group: GroupId, state: &mut ClientLink) -> Option<usize> {
        // bound: a window: no more messages are accepted than it has
        for number in state.number.max(self.released)..self.next {
            let index = modulo(number, self.overlay.limits().client_window);
            let message = self.messages.at(index);
            if message.first == group && message.ordinal >= state.stored {
                state.number = number;
                return (message.is_used && message.ordinal == state.stored).then_some(index);
            }
        }
        None
    }

    /// Returns the number of this client's messages that a replica has taken.
    fn taken(&self, theirs: Row<'_>) -> Result<Ordinal, Halt> {
        let opened = theirs.cell(taken_row::OPENED)?.load();
        if opened >> 1 != u64::from(self.options.incarnation) {
            return Ok(Ordinal::ZERO);
        }
        Ok(Ordinal(theirs.cell(taken_row::TAKEN)?.load()))
    }

    /// Tells the replica that nothing more will come, once all multicast messages have been posted.
    fn show_leaving(&mut self, link: LinkId, row: RowWriter<'_>) -> Result<(), Halt> {
        if !self.is_leaving {
            return Ok(());
        }
        let (_, _, next) = self.other_end(link)?;
        let state = self.state.at_mut(link);
        if !state.shows_leaving && state.posted >= next {
            put(row, feed_row::LEAVES, 1)?;
            state.shows_leaving = true;
            state.attached.dirty = true;
        }
        Ok(())
    }

    pub(super) fn post<F: Fabric, M: Memory>(
        &mut self,
        link: LinkId,
        fabric: &mut F,
        memory: &M,
    ) -> Result<(), Halt> {
        let Some((row, theirs)) = memory.link(link) else { return Ok(()) };
        self.notice_closing(theirs)?;
        let (_, shape, _) = self.other_end(link)?;
        let ring = Ring::of_client(&shape);
        self.show_leaving(link, row)?;
        // bound: a window
        for _ in 0..shape.client_window() {
            let state = *self.state.at(link);
            if state.posted >= state.stored && !state.attached.dirty {
                break;
            }
            let mut posting = Posting::new(&self.capabilities);
            if state.attached.dirty {
                let area = Area { region: Region::ROW, offset: feed_row::LEAVES };
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
            let state = self.state.at_mut(link);
            (state.posted, state.attached.dirty) = (to, false);
        }
        Ok(())
    }
}

const _: () = assert!(feed_row::SLOTS == CACHE_LINE);
