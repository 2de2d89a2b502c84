//! How a client sends the bodies of long messages, if entries refer to payloads (TRM-9): over its
//! own connections, to each replica of each group that orders them.
//!
//! A body is posted before the slot of its message. It replaces an earlier body once the replica
//! has replied to the earlier body's message. The client sends the body to a slow replica too, as
//! long as the client has it. Once the client needs the memory for another message, it tells the
//! replica that the body will no longer come, so that the replica can ask its leader without
//! waiting for the client.
//!
//! A step sends a bounded number of bytes. The first bodies are therefore in flight while the next
//! ones are copied into their rows, and answers are read between two such steps.

use super::{Client, ClientLink, MessageState};
use crate::fabric::{Area, Fabric, Region, WRITES_MAX};
use crate::ids::index_from_u32;
use crate::memory::RowWriter;
use crate::tram::link::put;
use crate::tram::link::{LinkId, Memory};
use crate::tram::overlay::ReplicaId;
use crate::tram::posting::Posting;
use crate::tram::progress::Halt;
use crate::tram::shape::{Shape, feed_row, modulo};

/// Size in bytes of a name in a client's row: the message and its owner.
const NAME_BYTES: usize = 16;

/// Number of body bytes after which a step sends no more: about what a port sends in a few
/// microseconds.
const STEP_BYTES: u64 = 16 << 10;

impl Client<'_> {
    /// Posts to one replica the bodies that it has room for.
    pub(super) fn give<F: Fabric, M: Memory>(
        &mut self,
        link: LinkId,
        fabric: &mut F,
        memory: &M,
    ) -> Result<(), Halt> {
        let mut state = *self.state.at(link);
        let (replica, shape, _) = self.other_end(link)?;
        if !shape.has_references() {
            return Ok(());
        }
        let kept = self.next.saturating_sub(u64::from(shape.client_window()));
        if kept > state.given {
            (state.given, state.given_up) = (kept, kept);
        }
        if state.given_up > state.given_up_told {
            self.give_up(link, &mut state, fabric, memory)?;
        }
        // bound: a window: a list takes one body at least
        for _ in 0..shape.client_window() {
            if !self.give_list(link, &mut state, replica, &shape, fabric, memory)? {
                break;
            }
        }
        *self.state.at_mut(link) = state;
        Ok(())
    }

    /// Returns whether a replica still needs the body of a message. A replica that has passed the
    /// message does not, even if its leader carried the body.
    fn is_due<M: Memory>(
        &self,
        message: &MessageState,
        link: LinkId,
        replica: ReplicaId,
        shape: &Shape,
        memory: &M,
    ) -> Result<bool, Halt> {
        let is_its = shape.is_reference(message.length)
            && self.overlay.handles(replica.group, message.first, message.destinations);
        if !is_its {
            return Ok(false);
        }
        let reply = self.reply(link, message.number, memory)?;
        Ok(reply.is_none_or(|reply| reply.number != message.number))
    }

    /// Tells a replica which bodies will no longer come. This notice lands after the bodies that
    /// were sent, so a replica that reads it has them.
    fn give_up<F: Fabric, M: Memory>(
        &mut self,
        link: LinkId,
        state: &mut ClientLink,
        fabric: &mut F,
        memory: &M,
    ) -> Result<(), Halt> {
        let Some((row, _)) = memory.link(link) else { return Ok(()) };
        put(row, feed_row::GIVES_FROM, state.given_up)?;
        let cell = Area { region: Region::ROW, offset: feed_row::GIVES_FROM };
        let mut posting = Posting::new(&self.capabilities);
        posting.guard(cell, cell, 8);
        let attached = state.attached;
        if fabric.post(attached.view, attached.peer, posting.writes(), None).is_ok() {
            self.progress.lists = self.progress.lists.saturating_add(1);
            self.progress.writes = self.progress.writes.saturating_add(1);
            state.given_up_told = state.given_up;
        }
        Ok(())
    }

    /// Posts as many bodies as fit in one list, because a separate post for each would cost more
    /// than a short body. The names follow all bodies of the list. Returns false if no body was
    /// given.
    fn give_list<F: Fabric, M: Memory>(
        &mut self,
        link: LinkId,
        state: &mut ClientLink,
        replica: ReplicaId,
        shape: &Shape,
        fabric: &mut F,
        memory: &M,
    ) -> Result<bool, Halt> {
        let Some((row, _)) = memory.link(link) else { return Ok(false) };
        let own = |offset: usize| Area { region: Region::ROW, offset };
        let mut posting = Posting::new(&self.capabilities);
        let mut numbers: heapless::Vec<u64, WRITES_MAX> = heapless::Vec::new();
        let (mut next, mut bytes) = (state.given, self.given_bytes);
        // bound: a window
        for number in state.given..self.next {
            let index = modulo(number, shape.client_window());
            let message = *self.messages.at(index);
            if self.is_due(&message, link, replica, shape, memory)? {
                // One write is for this body, and one for each name.
                let writes = numbers.len().saturating_add(2);
                if bytes >= STEP_BYTES
                    || posting.room() < writes
                    || !self.has_place(row, link, number, shape, memory)?
                {
                    break;
                }
                self.store_body(row, &message, shape)?;
                let body = own(shape.given(number));
                posting.content(body, body, index_from_u32(message.length));
                // The push cannot fail: a list has more writes than bodies.
                let _ = numbers.push(number);
                bytes = bytes.saturating_add(u64::from(message.length));
            }
            next = number.saturating_add(1);
        }
        // bound: the writes of a list
        for number in &numbers {
            let name = own(shape.given_name(*number));
            posting.guard(name, name, NAME_BYTES);
        }
        let attached = state.attached;
        if !numbers.is_empty()
            && fabric.post(attached.view, attached.peer, posting.writes(), None).is_err()
        {
            // bound: the writes of a list
            for number in &numbers {
                put(row, shape.given_name(*number), 0)?;
            }
            return Ok(false);
        }
        state.given = next;
        if numbers.is_empty() {
            return Ok(false);
        }
        // A refused list does not count, so that bodies can be sent to other replicas in the
        // meantime.
        self.given_bytes = bytes;
        let writes = u32::try_from(posting.writes().len()).unwrap_or(u32::MAX);
        self.progress.lists = self.progress.lists.saturating_add(1);
        self.progress.writes = self.progress.writes.saturating_add(writes);
        Ok(true)
    }

    /// Returns whether the slot for a body is free, because the replica has replied to the message
    /// whose body was there.
    fn has_place<M: Memory>(
        &self,
        row: RowWriter<'_>,
        link: LinkId,
        number: u64,
        shape: &Shape,
        memory: &M,
    ) -> Result<bool, Halt> {
        let name = shape.given_name(number);
        let before = row.reader().cell(name)?.load();
        if let Some(before) = before.checked_sub(1) {
            let reply = self.reply(link, before, memory)?;
            if reply.is_none_or(|reply| reply.number < before) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn store_body(
        &mut self,
        row: RowWriter<'_>,
        message: &MessageState,
        shape: &Shape,
    ) -> Result<(), Halt> {
        let index = modulo(message.number, shape.client_window());
        let from = index.saturating_mul(index_from_u32(shape.payload_max()));
        let to = from.saturating_add(index_from_u32(message.length));
        row.apply(shape.given(message.number), self.payloads.get(from..to).unwrap_or(&[]))?;
        let name = shape.given_name(message.number);
        put(row, name.saturating_add(8), self.id_of(message.number).party_cell())?;
        put(row, name, message.number.saturating_add(1))?;
        let bytes = u64::from(message.length);
        self.progress.copied_bytes = self.progress.copied_bytes.saturating_add(bytes);
        Ok(())
    }
}
