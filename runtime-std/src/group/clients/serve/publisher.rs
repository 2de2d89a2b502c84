//! The member's side of a client that publishes.

use std::collections::VecDeque;

use tramontane_control::client_messages::{Bytes, ClientLife, LINES_MAX, Level, Reached};
use tramontane_core::ids::DurableCount;
use tramontane_core::node::DurableCounts;

use super::cut::Cut;
use super::outlet::Outlet;
use crate::group::clients::order::feed::ClientOutcome;
use crate::group::clients::order::table::Attachment;
use crate::group::clients::origin::Origin;

/// One publisher.
#[derive(Debug)]
pub(crate) struct Publisher {
    life: ClientLife,
    /// The attachment, once the group has attached the client.
    attachment: Option<Attachment>,
    /// The ordinal of the next line that the client sends.
    next: u64,
    /// Lines that are waiting for a slot. The last one has the ordinal before `next`.
    waiting: VecDeque<Box<[u8]>>,
    reached: Reached,
    /// For a client that waits for a log: pairs of a line count and the number of records that
    /// contain these lines.
    marks: Option<VecDeque<(u64, u64)>>,
    /// The levels last reported to the client.
    told: Reached,
}

impl Publisher {
    /// Creates a publisher that waits for a level.
    pub(crate) fn new(life: ClientLife, level: Level) -> Self {
        let (reached, told) = (Reached::default(), Reached::default());
        let marks = (level != Level::Delivered).then(VecDeque::new);
        Self { life, attachment: None, next: 0, waiting: VecDeque::new(), reached, marks, told }
    }

    pub(crate) const fn life(&self) -> ClientLife {
        self.life
    }

    /// Returns the number of lines delivered.
    pub(crate) const fn delivered(&self) -> u64 {
        self.reached.delivered
    }

    /// Returns whether more lines can be read from the client.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Records that the group has attached the client.
    pub(crate) fn attach(&mut self, attachment: Attachment) {
        self.attachment = Some(attachment);
        self.next = attachment.next;
        self.reached.delivered = attachment.next;
        if let Some(marks) = &mut self.marks {
            *marks = VecDeque::from([(attachment.next, attachment.records)]);
        }
        self.told = self.reached;
    }

    /// Records that a message of the client has been delivered.
    pub(crate) fn hear(&mut self, outcome: &ClientOutcome) {
        if let ClientOutcome::Delivered { ordinal, record, .. } = outcome {
            let lines = ordinal.saturating_add(1);
            self.reached.delivered = self.reached.delivered.max(lines);
            if let Some(marks) = &mut self.marks {
                marks.push_back((lines, record.saturating_add(1)));
            }
        }
    }

    /// Returns whether the client waits for a log.
    pub(crate) const fn waits_for_log(&self) -> bool {
        self.marks.is_some()
    }

    /// Records how many log records are durable.
    pub(crate) fn see_durable(&mut self, durable: &DurableCounts) {
        let Some(marks) = &mut self.marks else { return };
        let lines = |records: DurableCount, known: u64| {
            let among = marks.partition_point(|(_, of)| *of <= records.0);
            let last = among.checked_sub(1).and_then(|last| marks.get(last));
            last.map_or(known, |(lines, _)| known.max(*lines))
        };
        let DurableCounts { here, majority, everywhere } = *durable;
        self.reached.durable_here = lines(here, self.reached.durable_here);
        self.reached.durable_majority = lines(majority, self.reached.durable_majority);
        self.reached.durable_everywhere = lines(everywhere, self.reached.durable_everywhere);
        let known = here.min(everywhere).0;
        while marks.get(1).is_some_and(|(_, of)| *of <= known) {
            marks.pop_front();
        }
    }

    /// Takes lines from the client.
    pub(crate) fn publish(
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

    /// Sends waiting lines, as far as slots are free.
    pub(crate) fn go_on(&mut self, outlet: &mut Outlet) {
        while let Some(line) = self.waiting.front() {
            let waiting = u64::try_from(self.waiting.len()).unwrap_or(u64::MAX);
            let ordinal = self.next.saturating_sub(waiting);
            if !outlet.try_line(&Origin::Client { life: self.life, ordinal }, line) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    /// Ends the client's lease, so that the group need not remember the client.
    pub(crate) fn end(&self, outlet: &mut Outlet) {
        if let Some(Attachment { number: attachments, .. }) = self.attachment {
            outlet.put_word(Origin::LeaseEnds { life: self.life, attachments });
        }
    }

    /// Returns the levels to report to the client, if they have changed.
    pub(crate) fn take_reached(&mut self) -> Option<Reached> {
        let is_new = self.attachment.is_some() && self.reached != self.told;
        self.told = self.reached;
        is_new.then_some(self.reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(here: u64, majority: u64, everywhere: u64) -> DurableCounts {
        let [here, majority, everywhere] = [here, majority, everywhere].map(DurableCount);
        DurableCounts { here, majority, everywhere }
    }

    #[test]
    fn client_lines_become_durable_with_their_records() {
        let life = ClientLife::default();
        let mut publisher = Publisher::new(life, Level::DurableMajority);
        publisher.attach(Attachment { next: 2, number: 1, records: 10 });
        // These messages were delivered before the client came to this member.
        publisher.see_durable(&counts(9, 10, 9));
        assert_eq!(publisher.take_reached().map(|reached| reached.durable_majority), Some(2));
        for (ordinal, record) in [(2, 12), (3, 13), (4, 20)] {
            publisher.hear(&ClientOutcome::Delivered { life, ordinal, record });
        }
        publisher.see_durable(&counts(21, 13, 10));
        let reached = publisher.take_reached().expect("something is new");
        assert_eq!((reached.delivered, reached.durable_here), (5, 5));
        assert_eq!((reached.durable_majority, reached.durable_everywhere), (3, 2));
        publisher.see_durable(&counts(21, 13, 10));
        assert_eq!(publisher.take_reached(), None);
        publisher.see_durable(&counts(21, 21, 21));
        let reached = publisher.take_reached().expect("something is new");
        assert_eq!((reached.durable_majority, reached.durable_everywhere), (5, 5));
        assert_eq!(publisher.marks.map(|marks| marks.len()), Some(1));
    }
}
