//! The values that a replica publishes in its rows: to its peers, its parent and its clients. They
//! are posted with the next control line (see `rows`).
//!
//! Requirements: TRM-3, TRM-5, TRM-7.

use super::common::Common;
use super::counts::UpTo;
use super::entry::{Message, MessageId, Source};
use super::link::{LinkId, LinkRole, Memory, Stage, put};
use super::progress::Halt;
use super::replies::Reply;
use super::role::{Role, Standing};
use super::shape::{modulo, peer_row, taken_row};
use crate::ids::{ClientNumber, index_from_u32};
use crate::memory::RowWriter;

impl Common<'_> {
    /// Stores everything that this replica publishes over a link in the link's row.
    pub(super) fn show_all<M: Memory>(
        &mut self,
        role: &Role,
        link: LinkId,
        memory: &M,
    ) -> Result<(), Halt> {
        let Some((row, _)) = memory.link(link) else { return Ok(()) };
        match self.links.role(link) {
            Some(LinkRole::Peer(_)) => {
                put(row, peer_row::HEARTBEAT, self.shown.beats)?;
                put(row, peer_row::HEARS, self.shown.hears)?;
                put(row, peer_row::PROMISED, self.promised.cell())?;
                put(row, peer_row::DELIVERED, self.delivered)?;
                put(row, peer_row::STANDING, self.standing(role))?;
                if role.leads() {
                    put(row, peer_row::REQUEST, self.promised.cell())?;
                    self.ask(link);
                }
            }
            Some(LinkRole::Parent(_)) => {
                self.show_taken_by_parent(row)?;
                put(row, taken_row::LEADS, u64::from(self.shown.leading))?;
            }
            Some(LinkRole::Client(client)) => {
                self.show_taken_by_client(client, link, row)?;
                // A group that does not order the client's messages never opens the client, but the
                // client may wait for the answer of the group's leader.
                put(row, taken_row::LEADS, u64::from(self.shown.leading))?;
                self.show_replies(client, link, row)?;
            }
            Some(LinkRole::Child { .. }) | None => {}
        }
        self.touch(link);
        Ok(())
    }

    /// Returns this replica's standing in quorums, as published to the other replicas.
    fn standing(&self, role: &Role) -> u64 {
        let standing = Standing {
            incarnation: self.options.incarnation,
            is_voter: self.is_voter,
            leads: role.leads(),
            completes_visibly: self.completes_visibly(),
        };
        standing.cell()
    }

    /// Records that a count in a link's control line has risen. The count lets the peer reuse
    /// memory, which is not urgent. It is therefore posted with the next other post, at the next
    /// heartbeat, or once it has risen by more than `slack`.
    pub(super) fn raise(&mut self, link: LinkId, count: u64, slack: u32) {
        let state = self.state.at_mut(link);
        state.count = count;
        let risen = count.saturating_sub(state.count_told);
        if risen > u64::from(slack) {
            self.touch(link);
        }
    }

    /// Marks the counts that were left for the next heartbeat as due for posting.
    pub(super) fn tell_counts(&mut self) {
        // bound: the links
        for state in self.state.iter_mut() {
            let is_there = state.attached.stage != Stage::Absent;
            state.attached.dirty |= is_there && state.count != state.count_told;
        }
    }

    /// Marks the control line of a link's row as due for posting.
    pub(super) fn touch(&mut self, link: LinkId) {
        let attached = &mut self.state.at_mut(link).attached;
        attached.dirty = attached.stage != Stage::Absent;
    }

    pub(super) fn show_taken<M: Memory>(
        &mut self,
        message: &Message,
        memory: &M,
    ) -> Result<(), Halt> {
        match message.source {
            Source::Client(client) => {
                let link = self.links.client(client);
                match memory.link(link) {
                    Some((row, _)) => self.show_taken_by_client(client, link, row),
                    None => Ok(()),
                }
            }
            Source::Parent => {
                let taken = message.ordinal.next().0;
                // bound: the replicas of the parent
                for link in self.links.parents() {
                    if let Some((row, _)) = memory.link(link) {
                        self.show_taken_by_parent(row)?;
                        self.raise(link, taken, self.shape.parent_window() >> 2);
                    }
                }
                Ok(())
            }
        }
    }

    pub(super) fn show_taken_by_parent(&self, row: RowWriter<'_>) -> Result<(), Halt> {
        let taken = self.counts.source(Source::Parent, UpTo::Delivered).next;
        put(row, taken_row::TAKEN, taken.0)
    }

    pub(super) fn show_taken_by_client(
        &mut self,
        client: ClientNumber,
        link: LinkId,
        row: RowWriter<'_>,
    ) -> Result<(), Halt> {
        let count = self.counts.client(client, UpTo::Delivered);
        let incarnation = self.state.at(link).attached.incarnation;
        if count.incarnation != incarnation {
            return Ok(());
        }
        put(row, taken_row::TAKEN, count.next.0)?;
        self.raise(link, count.next.0, self.shape.client_window() >> 2);
        let opened = (u64::from(incarnation) << 1) | u64::from(count.is_open);
        if row.reader().cell(taken_row::OPENED)?.load() != opened {
            put(row, taken_row::OPENED, opened)?;
            self.touch(link);
        }
        Ok(())
    }

    /// Publishes to the clients and the parent whether this replica leads, if that has changed.
    pub(super) fn show_leading<M: Memory>(&mut self, leads: bool, memory: &M) -> Result<(), Halt> {
        if leads == self.shown.leading {
            return Ok(());
        }
        self.shown.leading = leads;
        // bound: the replicas of the parent and the clients
        for link in self.links.feeders() {
            if let Some((row, _)) = memory.link(link) {
                put(row, taken_row::LEADS, u64::from(leads))?;
                self.touch(link);
            }
        }
        Ok(())
    }

    pub(super) fn show_delivered<M: Memory>(&mut self, memory: &M) -> Result<(), Halt> {
        // bound: the replicas of the group
        for link in self.links.peers() {
            if let Some((row, _)) = memory.link(link) {
                put(row, peer_row::DELIVERED, self.delivered)?;
                self.raise(link, self.delivered, self.shape.entries() >> 2);
            }
        }
        Ok(())
    }

    /// Publishes to the peers whether this replica counts and leads, if that has changed.
    pub(super) fn show_standing<M: Memory>(&mut self, role: &Role, memory: &M) -> Result<(), Halt> {
        let standing = self.standing(role);
        if standing == self.shown.standing {
            return Ok(());
        }
        self.shown.standing = standing;
        // bound: the replicas of the group
        for link in self.links.peers() {
            if let Some((row, _)) = memory.link(link) {
                put(row, peer_row::STANDING, standing)?;
                self.touch(link);
            }
        }
        Ok(())
    }

    /// Keeps a reply to a message, and stores it in the row of the message's client.
    pub(super) fn reply<M: Memory>(
        &mut self,
        id: MessageId,
        (answer, bytes): (u8, &[u8]),
        memory: &M,
    ) -> Result<(), Halt> {
        let reply = Reply { number: id.number, answer }.cell();
        // A leader may name a client that does not exist. The client may also have been replaced.
        if self.replies.keep(id, reply, bytes).is_none() {
            return Ok(());
        }
        let link = self.links.client(id.client);
        let Some((row, _)) = memory.link(link) else { return Ok(()) };
        if self.state.at(link).attached.incarnation != id.incarnation {
            return Ok(());
        }
        let index = modulo(id.number, self.overlay.limits().client_window);
        self.show_reply((id.client, link), index, reply, row)
    }

    /// Stores the kept replies in a client's row.
    pub(super) fn show_replies(
        &mut self,
        client: ClientNumber,
        link: LinkId,
        row: RowWriter<'_>,
    ) -> Result<(), Halt> {
        let attached = u64::from(self.state.at(link).attached.incarnation);
        // bound: a window
        for index in 0..index_from_u32(self.overlay.limits().client_window) {
            let (incarnation, replies) = self.replies.of_client(client).unwrap_or_default();
            let reply = replies.get(index).copied().unwrap_or(0);
            if reply != 0 && attached == incarnation {
                self.show_reply((client, link), index, reply, row)?;
            }
        }
        Ok(())
    }

    /// Stores a kept reply in the row of its client, after the answer.
    fn show_reply(
        &mut self,
        (client, link): (ClientNumber, LinkId),
        index: usize,
        reply: u64,
        row: RowWriter<'_>,
    ) -> Result<(), Halt> {
        let offset = taken_row::REPLIES.saturating_add(index.saturating_mul(8));
        let cell = row.cell(offset)?;
        if cell.load() >= reply {
            return Ok(());
        }
        let mut at = self.shape.answer(index);
        // bound: the cells of an answer
        for kept in self.replies.answer(client, index) {
            put(row, at, *kept)?;
            at = at.saturating_add(8);
        }
        cell.publish(reply);
        let state = self.state.at_mut(link);
        let end = index.saturating_add(1);
        state.replies = Some(match state.replies {
            None => (index, end),
            Some((from, to)) => (from.min(index), to.max(end)),
        });
        self.touch(link);
        Ok(())
    }
}
