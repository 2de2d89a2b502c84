//! Delivery: decided entries in their order, in the same way at the leader and at its followers.
//!
//! A replica hands over the messages that are for its group, and counts all entries. It publishes
//! what it has processed, to its peers so that they can reuse their logs, and to the clients and
//! the parent so that they can reuse their rings. It also replies to each message's client.
//!
//! Source: TRAM, section 5.3; requirements TRM-2, TRM-3, TRM-7.
//!
//! Requirement: TRM-5.

use super::common::Common;
use super::counts::UpTo;
use super::entry::{Content, Entry};
use super::link::Memory;
use super::overlay::Destinations;
use super::progress::{Delivered, Halt, ShardApplication};
use super::role::Held;
use super::step::StepContext;

impl Common<'_> {
    /// Delivers everything that is decided and present. Returns whether anything was delivered.
    pub(super) fn deliver<F, M: Memory, A: ShardApplication>(
        &mut self,
        held: &Held,
        application: &mut A,
        step: &StepContext<'_, F, M>,
    ) -> Result<bool, Halt> {
        let decided = self.saved_up_to(step.log.decided()?);
        let before = self.delivered;
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if self.delivered >= decided {
                break;
            }
            let place = self.delivered;
            let entry = step.log.load(place)?.ok_or(Halt::NoEntry)?;
            if !self.is_deliverable(held, place, &entry, step)? {
                break;
            }
            self.counts.count(&entry, UpTo::Delivered)?;
            self.delivered = place.saturating_add(1);
            self.process(place, &entry, application, step)?;
            self.progress.processed = self.progress.processed.saturating_add(1);
        }
        let is_further = self.delivered > before;
        if is_further {
            self.show_delivered(step.memory)?;
        }
        Ok(is_further)
    }

    fn process<F, M: Memory, A: ShardApplication>(
        &mut self,
        place: u64,
        entry: &Entry,
        application: &mut A,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        match entry.content {
            Content::Message(message) => {
                if message.destinations.meets(Destinations::of(self.id.group)) {
                    let payload = if self.shape.is_reference(message.length) {
                        step.log.body(place, message.length, self.payload)?
                    } else {
                        step.log.payload(place, message.length, self.payload)?
                    };
                    let answer = application.deliver(&Delivered {
                        place,
                        id: message.id,
                        destinations: message.destinations,
                        payload,
                    });
                    self.progress.delivered = self.progress.delivered.saturating_add(1);
                    self.reply(message.id, (answer, application.answer()), step.memory)?;
                } else if self.shape.is_reference(message.length) {
                    // The client may then replace this body with another.
                    self.reply(message.id, (0, &[]), step.memory)?;
                }
                self.show_taken(&message, step.memory)
            }
            Content::Open { client, .. } | Content::Close { client, .. } => {
                let link = self.links.client(client);
                match step.memory.link(link) {
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
