//! A client that publishes, at the member that it is at.

use std::collections::VecDeque;

use tramontane_control::client_messages::{Bytes, ClientLife, LINES_MAX, Reached};

use super::connection::Cut;
use super::feed::Outcome;
use super::origin::Origin;
use super::outlet::Outlet;
use super::table::Attachment;

/// One publisher.
#[derive(Debug)]
pub(super) struct Publisher {
    life: ClientLife,
    /// Once the group has attached it.
    attachment: Option<Attachment>,
    /// The ordinal of the next line that it sends.
    next: u64,
    /// Lines that have found no slot yet; the last one has the ordinal before `next`.
    waiting: VecDeque<Box<[u8]>>,
    reached: Reached,
    /// What it was told.
    told: Reached,
}

impl Publisher {
    pub(super) fn new(life: ClientLife) -> Self {
        let (reached, told) = (Reached::default(), Reached::default());
        Self { life, attachment: None, next: 0, waiting: VecDeque::new(), reached, told }
    }

    pub(super) const fn life(&self) -> ClientLife {
        self.life
    }

    /// How many of its lines were delivered.
    pub(super) const fn delivered(&self) -> u64 {
        self.reached.delivered
    }

    /// Whether more can be read from it.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The group has attached it.
    pub(super) const fn attach(&mut self, attachment: Attachment) {
        self.attachment = Some(attachment);
        self.next = attachment.next;
        self.reached.delivered = attachment.next;
        self.told = self.reached;
    }

    /// Something of it was delivered.
    pub(super) fn hear(&mut self, outcome: &Outcome) {
        if let Outcome::Delivered { ordinal, .. } = outcome {
            self.reached.delivered = self.reached.delivered.max(ordinal.saturating_add(1));
        }
    }

    /// Takes lines that it sends.
    pub(super) fn publish(
        &mut self,
        first: u64,
        lines: &[Bytes<'_>],
        outlet: &mut Outlet,
    ) -> Result<(), Cut> {
        let is_next = self.attachment.is_some() && first == self.next;
        let line_max = outlet.line_max();
        let fit = lines.len() <= LINES_MAX && lines.iter().all(|line| line.0.len() <= line_max);
        if !is_next || !fit {
            return Err(Cut::Malformed);
        }
        for line in lines {
            let origin = Origin::Client { life: self.life, ordinal: self.next };
            if !(self.has_room() && outlet.try_line(&origin, line.0)) {
                self.waiting.push_back(line.0.into());
            }
            self.next = self.next.saturating_add(1);
        }
        Ok(())
    }

    /// Sends lines that wait, as far as slots are free.
    pub(super) fn go_on(&mut self, outlet: &mut Outlet) {
        while let Some(line) = self.waiting.front() {
            let waiting = u64::try_from(self.waiting.len()).unwrap_or(u64::MAX);
            let ordinal = self.next.saturating_sub(waiting);
            if !outlet.try_line(&Origin::Client { life: self.life, ordinal }, line) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    /// It ends, and the group need not remember it.
    pub(super) fn end(&self, outlet: &mut Outlet) {
        if let Some(Attachment { number: attachments, .. }) = self.attachment {
            outlet.put_word(Origin::LeaseEnds { life: self.life, attachments });
        }
    }

    /// What it is to be told, if there is something new.
    pub(super) fn take_reached(&mut self) -> Option<Reached> {
        let is_new = self.attachment.is_some() && self.reached != self.told;
        self.told = self.reached;
        is_new.then_some(self.reached)
    }
}
