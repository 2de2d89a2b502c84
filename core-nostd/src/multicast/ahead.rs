//! Messages that are shown to the application before delivery, so that a log has them before the
//! view is sealed (DUR-6).
//!
//! # Invariants
//! - Showing messages leaves the node's state unchanged: they are delivered or dropped later.

use super::application::Application;
use super::batch::Batch;
use super::state::Work;
use super::watched::Misbehaved;
use crate::ids::Frontier;

impl Work<'_, '_> {
    /// Shows the application the undelivered messages up to a trim that is not above the received
    /// frontier, once per trim. Returns an error if a sender changed one of these messages.
    pub(crate) fn show_until<A: Application>(
        &mut self,
        application: &mut A,
        trim: Frontier,
    ) -> Result<(), Misbehaved> {
        if !self.subgroup.is_logged || self.subgroup.shown_to == Some(trim) {
            return Ok(());
        }
        // bound: the senders
        for sender in self.senders.iter_mut() {
            sender.before_shown = (sender.hand, sender.large_handed);
        }
        let subgroup = &*self.subgroup;
        let mut batch = Batch::new(
            subgroup.id,
            subgroup.delivery,
            self.order,
            self.senders,
            self.rows,
            subgroup.window,
            (subgroup.next_round, subgroup.next_sender),
            trim.min(subgroup.received),
            (u64::MAX, subgroup.checks),
        );
        application.append(&mut batch);
        let ended = batch.finish();
        // bound: the senders
        for sender in self.senders.iter_mut() {
            (sender.hand, sender.large_handed) = sender.before_shown;
        }
        if let Some(refused) = ended.refused {
            self.subgroup.refused.get_or_insert(refused);
            return Err(refused.into());
        }
        self.subgroup.shown_to = Some(trim);
        Ok(())
    }
}
