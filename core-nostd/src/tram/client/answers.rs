//! Answers to a client's messages: whose it waits for, and what has come.

use super::{Client, MessageState};
use crate::ids::GroupId;
use crate::tram::entry::MessageId;
use crate::tram::link::{LinkId, Memory, Stage};
use crate::tram::overlay::{Destinations, ReplicaId};
use crate::tram::progress::Halt;
use crate::tram::replies::Reply;
use crate::tram::shape::{modulo, taken_row};

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

/// A message whose answers have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What names it.
    pub id: MessageId,
    /// The groups that it was for.
    pub destinations: Destinations,
}

impl Client<'_> {
    /// The oldest message whose answers have come, if it was not given yet. Its replies can be
    /// looked at with [`Client::replies`] until the next call.
    pub fn poll(&mut self) -> Option<Answered> {
        let limits = self.overlay.limits();
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

    pub(super) fn look_for_answers<M: Memory>(&mut self, memory: &M) -> Result<(), Halt> {
        for index in 0..self.messages.len() {
            let Some(message) = self.messages.get(index).copied() else { break };
            if !message.is_used || message.is_answered {
                continue;
            }
            let mut waiting = message.waiting;
            for group in message.waiting.iter() {
                if self.is_answered(&message, group, memory)? {
                    waiting = Destinations(waiting.0 & !Destinations::of(group).0);
                }
            }
            if let Some(message) = self.messages.get_mut(index) {
                message.waiting = waiting;
                message.is_answered = waiting == Destinations::default();
            }
        }
        Ok(())
    }

    fn is_answered<M: Memory>(
        &mut self,
        message: &MessageState,
        group: GroupId,
        memory: &M,
    ) -> Result<bool, Halt> {
        let (mut some, mut all) = (false, true);
        for link in self.links.of_group(group) {
            self.progress.looked = self.progress.looked.saturating_add(1);
            let reply = self.reply(link, message.number, memory)?;
            match reply.filter(|reply| reply.number == message.number) {
                Some(_) => {
                    some =
                        some || message.answers != Answers::Leaders || self.leads(link, memory)?
                }
                None => all = all && self.stage(link) != Stage::Ready,
            }
        }
        Ok(match message.answers {
            Answers::All => some && all,
            Answers::OneOfEach | Answers::Leaders => some,
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
