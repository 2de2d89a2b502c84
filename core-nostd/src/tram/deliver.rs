//! Delivery: decided entries in their order, at the leader and at its followers alike.
//!
//! A replica hands over the messages that are for its group, and counts all entries. What it has
//! processed it shows: to its peers, so that they may reuse their logs; to the clients and the
//! parent, so that they may reuse their rings; and a reply to each message's client.
//!
//! Source: TRAM, section 5.3; requirements TRM-2, TRM-3, TRM-7.
//!
//! Requirement: TRM-5.

use super::counts::UpTo;
use super::entry::{Content, Entry};
use super::link::Memory;
use super::log::Log;
use super::overlay::Destinations;
use super::progress::{Application, Delivered, Halt};
use super::replica::Replica;

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
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if self.delivered >= decided {
                break;
            }
            let place = self.delivered;
            let entry = log.load(place)?.ok_or(Halt::NoEntry)?;
            if !self.is_deliverable(place, &entry, log, memory)? {
                break;
            }
            self.counts.count(&entry, UpTo::Delivered)?;
            self.delivered = place.saturating_add(1);
            self.process(place, &entry, log, memory, application)?;
            self.progress.processed = self.progress.processed.saturating_add(1);
        }
        if self.delivered > before {
            // What this replica lacked has come. If it lacks more, it is told again.
            self.needs_snapshot = false;
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
                    let payload = if self.shape.is_reference(message.length) {
                        log.body(place, message.length, self.payload)?
                    } else {
                        log.payload(place, message.length, self.payload)?
                    };
                    let answer = application.deliver(&Delivered {
                        place,
                        id: message.id,
                        destinations: message.destinations,
                        payload,
                    });
                    self.progress.delivered = self.progress.delivered.saturating_add(1);
                    self.reply(message.id, answer, memory)?;
                } else if self.shape.is_reference(message.length) {
                    // The client may give another body in the place of this one's.
                    self.reply(message.id, 0, memory)?;
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
}
