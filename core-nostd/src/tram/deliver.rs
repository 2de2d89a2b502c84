//! Delivery: decided entries in their order, at the leader and at its followers alike.
//!
//! A replica hands over the messages that are for its group, and counts all entries. What it has
//! processed it shows: to its peers, so that they may reuse their logs; to the clients and the
//! parent, so that they may reuse their rings; and a reply to each message's client.
//!
//! A reply is one cell of a ring, at the message's number. It only rises, so a late reply to an
//! earlier message never hides a later one.
//!
//! Source: TRAM, section 5.3; requirements TRM-2, TRM-3, TRM-7.

use super::counts::UpTo;
use super::entry::{Content, Entry, Message, MessageId, Source};
use super::link::{LinkId, Memory};
use super::log::Log;
use super::overlay::Destinations;
use super::progress::{Application, Delivered, Halt};
use super::replica::{Replica, put};
use super::shape::{modulo, peer_row, taken_row};
use crate::ids::{ClientNumber, u64_from_index};
use crate::memory::RowWriter;

/// What a replica tells a client of one of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) number: u64,
    pub(super) answer: u8,
}

impl Reply {
    pub(super) fn cell(self) -> u64 {
        let number = self.number.saturating_add(1) & ((1 << 56) - 1);
        (number << 8) | u64::from(self.answer)
    }

    pub(super) fn from_cell(cell: u64) -> Option<Self> {
        let number = (cell >> 8).checked_sub(1)?;
        let answer = u8::try_from(cell & 0xff).unwrap_or(0);
        Some(Self { number, answer })
    }
}

impl Replica<'_> {
    /// Delivers all that is decided and here.
    pub(super) fn deliver<M: Memory, A: Application>(
        &mut self,
        log: Log<'_>,
        memory: &M,
        application: &mut A,
    ) -> Result<(), Halt> {
        let decided = log.decided()?;
        let before = self.delivered;
        for _ in 0..self.shape.entries() {
            if self.delivered >= decided {
                break;
            }
            let place = self.delivered;
            let entry = log.load(place)?.ok_or(Halt::NoEntry)?;
            self.counts.count(&entry, UpTo::Delivered).map_err(|_| Halt::NotContinued)?;
            self.delivered = place.saturating_add(1);
            self.process(place, &entry, log, memory, application)?;
            self.progress.processed = self.progress.processed.saturating_add(1);
        }
        if self.delivered > before {
            self.show_delivered(memory)?;
        }
        Ok(())
    }

    fn process<M: Memory, A: Application>(
        &mut self,
        place: u64,
        entry: &Entry,
        log: Log<'_>,
        memory: &M,
        application: &mut A,
    ) -> Result<(), Halt> {
        match entry.content {
            Content::Message(message) => {
                if message.destinations.meets(Destinations::of(self.id.group)) {
                    let payload = log.payload(place, message.length, self.payload)?;
                    let answer = application.deliver(&Delivered {
                        place,
                        id: message.id,
                        destinations: message.destinations,
                        payload,
                    });
                    self.progress.delivered = self.progress.delivered.saturating_add(1);
                    self.reply(&message, answer, memory)?;
                }
                self.show_taken(&message, memory)
            }
            Content::Open { client, .. } | Content::Close { client, .. } => {
                let link = self.links.client(client);
                match memory.link(link) {
                    Some((row, _)) => self.show_taken_by_client(client, link, row),
                    None => Ok(()),
                }
            }
            Content::Admit { rank, incarnation } => {
                if rank == self.id.rank && incarnation == self.options.incarnation {
                    self.is_voter = true;
                }
                Ok(())
            }
            Content::Null { .. } => Ok(()),
        }
    }

    fn reply<M: Memory>(&mut self, message: &Message, answer: u8, memory: &M) -> Result<(), Halt> {
        let MessageId { client, incarnation, number } = message.id;
        if client.0 >= self.overlay.limits().clients {
            return Ok(());
        }
        let link = self.links.client(client);
        let Some((row, _)) = memory.link(link) else { return Ok(()) };
        let Some(state) = self.state.get_mut(link.index()) else { return Ok(()) };
        if state.attached.incarnation != incarnation {
            return Ok(());
        }
        let index = modulo(number, self.overlay.limits().client_window);
        let offset = taken_row::REPLIES.saturating_add(index.saturating_mul(8));
        let reply = Reply { number, answer }.cell();
        let cell = row.cell(offset)?;
        if cell.load() < reply {
            cell.publish(reply);
            let end = offset.saturating_add(8);
            state.replies = Some(match state.replies {
                None => (offset, end),
                Some((from, to)) => (from.min(offset), to.max(end)),
            });
            self.touch(link);
        }
        Ok(())
    }

    fn show_taken<M: Memory>(&mut self, message: &Message, memory: &M) -> Result<(), Halt> {
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
        let incarnation =
            self.state.get(link.index()).map_or(0, |state| state.attached.incarnation);
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
        put(row, taken_row::LEADS, u64::from(self.is_leader()))
    }

    /// Shows the clients whether this replica leads, once that has changed.
    pub(super) fn show_leading<M: Memory>(&mut self, memory: &M) -> Result<(), Halt> {
        let leads = self.is_leader();
        if leads == self.shown_leading {
            return Ok(());
        }
        self.shown_leading = leads;
        for client in self.links.clients() {
            let link = self.links.client(client);
            if let Some((row, _)) = memory.link(link) {
                put(row, taken_row::LEADS, u64::from(leads))?;
                self.touch(link);
            }
        }
        Ok(())
    }

    fn show_delivered<M: Memory>(&mut self, memory: &M) -> Result<(), Halt> {
        for link in self.links.peers() {
            if let Some((row, _)) = memory.link(link) {
                put(row, peer_row::DELIVERED, self.delivered)?;
                self.raise(link, self.delivered, self.shape.entries() >> 2);
            }
        }
        Ok(())
    }

    /// Shows the peers whether this replica counts and leads, once that has changed.
    pub(super) fn show_standing<M: Memory>(&mut self, memory: &M) -> Result<(), Halt> {
        let standing = self.standing();
        if standing == self.shown_standing {
            return Ok(());
        }
        self.shown_standing = standing;
        for link in self.links.peers() {
            if let Some((row, _)) = memory.link(link) {
                put(row, peer_row::STANDING, standing)?;
                self.touch(link);
            }
        }
        Ok(())
    }
}

const _: () = assert!(u64_from_index(taken_row::REPLIES) == 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_from_its_cell_and_later_ones_are_greater() {
        for number in [0, 1, (1 << 55) - 1] {
            for answer in [0, 1, 255] {
                let reply = Reply { number, answer };
                assert_eq!(Reply::from_cell(reply.cell()), Some(reply));
                let later = Reply { number: number + 1, answer: 0 };
                assert!(later.cell() > reply.cell());
            }
        }
        assert_eq!(Reply::from_cell(0), None);
    }
}
