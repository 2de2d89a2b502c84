//! Answers to a client's messages: the answers that the client waits for, and those that have
//! arrived.
//!
//! Requirement: TRM-7.

use super::{Client, MessageState};
use crate::ids::GroupId;
use crate::tram::entry::MessageId;
use crate::tram::link::{LinkId, Memory, Stage};
use crate::tram::overlay::{Destinations, ReplicaId};
use crate::tram::progress::Halt;
use crate::tram::replies::Reply;
use crate::tram::shape::{modulo, taken_row};

/// The answers that a client waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Answers {
    /// One answer from each destination.
    #[default]
    OneOfEach,
    /// The leader's answer from each destination.
    Leaders,
    /// The answers of all connected replicas of all destinations.
    All,
}

/// A message whose answers have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its name.
    pub id: MessageId,
    /// Destination groups of the message.
    pub destinations: Destinations,
}

/// A group's answer to a message.
enum Answer {
    /// No replica has delivered the message, as far as is known.
    Silence,
    /// A replica has delivered the message, but the client waits for more answers.
    Some,
    Enough,
}

impl Client<'_> {
    /// Returns the oldest message whose answers have arrived and that has not been returned yet.
    /// Its replies can be read with [`Client::replies`] until the next call.
    pub fn poll(&mut self) -> Option<Answered> {
        let limits = self.overlay.limits();
        self.answered = self.answered.checked_sub(1)?;
        // bound: a window: no more messages are accepted than it has
        for number in self.released..self.next {
            let index = modulo(number, limits.client_window);
            let message = self.messages.at_mut(index);
            if message.is_used && message.is_answered {
                message.is_used = false;
                let destinations = message.destinations;
                self.release();
                return Some(Answered { id: self.id_of(number), destinations });
            }
        }
        None
    }

    /// Returns whether [`Client::poll`] would return a message.
    #[must_use]
    pub const fn has_answers(&self) -> bool {
        self.answered > 0
    }

    /// Calls `each` with every reply to a message: the replica that has delivered the message, its
    /// answer, and whether it leads its group now.
    pub fn replies<M: Memory>(
        &self,
        answered: &Answered,
        memory: &M,
        mut each: impl FnMut(ReplicaId, u8, bool),
    ) {
        // bound: the groups of the overlay
        for group in answered.destinations.iter() {
            // bound: the replicas of a group
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

    /// Copies the answer of one replica to a message. Returns the answer's length in bytes, which
    /// may exceed the [limit](super::Overlay::answer_max) or the given room: then only the first
    /// bytes are copied. Returns `None` if the replica has not replied. Its answer can be read for
    /// as long as its reply.
    pub fn answer<M: Memory>(
        &self,
        answered: &Answered,
        replica: ReplicaId,
        memory: &M,
        into: &mut [u8],
    ) -> Option<u64> {
        let link = self.links.find(replica)?;
        let number = answered.id.number;
        let reply = self.reply(link, number, memory).ok()?;
        reply.filter(|reply| reply.number == number)?;
        let (_, shape, _) = self.other_end(link).ok()?;
        if shape.answer_cells() == 0 {
            return Some(0);
        }
        let (_, theirs) = memory.link(link)?;
        let mut at = shape.answer(modulo(number, shape.client_window()));
        let length = theirs.cell(at).ok()?.load();
        let bytes = shape.answer_bytes(length).saturating_sub(8);
        let mut places = into.iter_mut().take(bytes);
        // bound: the cells of an answer
        for _ in 0..bytes.div_ceil(8) {
            at = at.saturating_add(8);
            // bound: the bytes of a cell
            for byte in theirs.cell(at).ok()?.load().to_le_bytes() {
                if let Some(place) = places.next() {
                    *place = byte;
                }
            }
        }
        Some(length)
    }

    fn release(&mut self) {
        let window = self.overlay.limits().client_window;
        // bound: a window
        for _ in 0..window {
            let index = modulo(self.released, window);
            if self.released >= self.next || self.messages.at(index).is_used {
                break;
            }
            self.released = self.released.saturating_add(1);
        }
    }

    /// Looks for answers, beginning with the oldest message. Messages that the same group orders
    /// first are delivered in their order. So if no replica has replied to one of them, no replica
    /// has replied to a later one.
    pub(super) fn look_for_answers<M: Memory>(&mut self, memory: &M) -> Result<(), Halt> {
        // bound: the groups of the overlay
        for group in self.groups.iter_mut() {
            group.silent = Destinations::default();
        }
        // bound: a window: no more messages are accepted than it has
        for number in self.released..self.next {
            let index = modulo(number, self.overlay.limits().client_window);
            if self.messages.at(index).is_answered {
                continue;
            }
            let silent = self.look_for_answers_to(index, memory)?;
            let message = self.messages.at(index);
            let is_silent =
                message.waiting == message.destinations && message.waiting.0 & !silent.0 == 0;
            if is_silent && number >= self.alike_from {
                break;
            }
        }
        Ok(())
    }

    /// Looks for the answers to one message. Returns the groups that have not replied to it, or to
    /// an earlier message that the same group orders first.
    fn look_for_answers_to<M: Memory>(
        &mut self,
        index: usize,
        memory: &M,
    ) -> Result<Destinations, Halt> {
        let message = *self.messages.at(index);
        let mut silent = self.groups.at(message.first).silent;
        let mut waiting = message.waiting;
        // bound: the groups of the overlay
        for group in Destinations(message.waiting.0 & !silent.0).iter() {
            match self.answer_of(&message, group, memory)? {
                Answer::Silence => silent = silent.with(group),
                Answer::Some => {}
                Answer::Enough => {
                    waiting = Destinations(waiting.0 & !Destinations::of(group).0);
                }
            }
        }
        self.groups.at_mut(message.first).silent = silent;
        let message = self.messages.at_mut(index);
        message.waiting = waiting;
        message.is_answered = waiting == Destinations::default();
        self.answered = self.answered.saturating_add(u64::from(message.is_answered));
        Ok(silent)
    }

    fn answer_of<M: Memory>(
        &mut self,
        message: &MessageState,
        group: GroupId,
        memory: &M,
    ) -> Result<Answer, Halt> {
        let (mut replied, mut some, mut all) = (false, false, true);
        // bound: the replicas of a group
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

    /// Returns whether a replica publishes that it leads its group.
    fn leads<M: Memory>(&self, link: LinkId, memory: &M) -> Result<bool, Halt> {
        match memory.link(link) {
            None => Ok(false),
            Some((_, theirs)) => Ok(theirs.cell(taken_row::LEADS)?.load() == 1),
        }
    }

    pub(super) fn reply<M: Memory>(
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
