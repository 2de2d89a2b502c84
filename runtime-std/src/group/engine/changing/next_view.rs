//! The change from one view to the next.

use std::sync::Arc;

use tramontane_core::fabric::Fabric as _;
use tramontane_core::fabric::LossCause;
use tramontane_core::ids::NodeId;
use tramontane_core::multicast::Batch;
use tramontane_core::view::NextView;

use super::Engine;
use crate::group::delivery::application::Application;
use crate::group::delivery::message::ViewChanged;
use crate::group::description::subgroups::logged_subgroups;
use crate::group::description::view::View;
use crate::group::engine::parts::Parts;
use crate::group::engine::prepared::{open, prepare};
use crate::group::engine::promising::Promising;
use crate::group::join::admission::Admission;
use crate::member::Stopped;
use crate::poll::Steps as _;
use crate::poll::guarded;

impl<A: Application> Engine<A> {
    /// Releases the previous view's memory once the end of that view has reached all peers.
    pub(crate) fn let_go(&mut self) -> Result<(), Stopped> {
        let Some(ended) = &mut self.ended else { return Ok(()) };
        let fabric = &mut self.parts.fabric;
        let mut nothing = |_: &mut Batch<'_>| {};
        let stepped = ended.change(|node| {
            node.step_logged(self.clock.now(), fabric, &mut nothing, |_: NextView<'_>| false)
        });
        stepped.map_err(Stopped::Broken)?;
        // A peer that has accepted nothing by then is suspected in the new view, if it is a member
        // of it.
        let is_over = self.clock.now() >= self.ended_until;
        if (ended.read(|node| node.is_all_posted()) || is_over) && fabric.retire(ended.view().id) {
            let gone = ended.view().members.iter().filter(|node| !self.view.members.contains(node));
            gone.for_each(|node| self.parts.fabric.part_from(*node));
            self.ended = None;
            self.leave_when_free()?;
        }
        Ok(())
    }

    /// Records the promise that the core has asked for, once the logs contain everything that it
    /// covers.
    pub(crate) fn keep_promise(&mut self) -> Result<(), Stopped> {
        let Some(asked) = self.promising.wanted.take() else { return Ok(()) };
        let logs = &self.parts.logs;
        if !logs.are_durable()? {
            // The core will ask again.
            return Ok(());
        }
        let ends = logged_subgroups(&self.parts.participant.description);
        let ends = ends.map(|subgroup| logs.end(subgroup)).collect();
        let description = &self.parts.participant.description;
        self.record.promises(asked.clone().with_ends(description, ends))?;
        self.promising.kept = Some(asked);
        // The disk may have taken a while.
        self.clock.read_at_next_step();
        Ok(())
    }

    pub(crate) fn prepare_next(&mut self, list: &[NodeId]) -> Result<(), Stopped> {
        let next = self.view.next(&self.parts.participant.description, list);
        if let Some(other) = self.prepared.take() {
            // A later proposal has replaced the view requested before.
            self.parts.fabric.retire(other.view.id);
            self.lost_peers.forget(other.view.id);
        }
        self.prepared = Some(prepare(&mut self.parts, next, list.to_vec())?);
        Ok(())
    }

    /// Continues in the next view.
    pub(crate) fn install(&mut self) -> Result<(), Stopped> {
        let Some(list) = self.present.next_list() else { return Ok(()) };
        let is_prepared = self.prepared.as_ref().is_some_and(|prepared| prepared.list == list);
        if !is_prepared {
            if self.ended.is_some() {
                return Ok(());
            }
            self.prepare_next(&list)?;
        }
        let Some(prepared) = self.prepared.take() else { return Ok(()) };
        let suspected = self.present.suspected();
        self.note_delivered();
        for sending in &mut self.parts.sending {
            sending.end(self.present.read(|node| node.node().undelivered(sending.subgroup())));
        }
        self.large.end(&mut self.parts.fabric);
        let (next, view) = open(&self.parts, prepared)?;
        let description = &self.parts.participant.description;
        self.admission =
            Arc::new(Admission::after(&mut self.present, View::clone(&view), description));
        self.joiners.view_ends(&self.present, &self.admission);
        self.ended = Some(std::mem::replace(&mut self.present, next));
        let options = self.parts.participant.view_options();
        self.ended_until = self.clock.now().after(options.failure_timeout_ns.saturating_mul(2));
        let before = std::mem::replace(&mut self.view, view);
        let joined: Vec<NodeId> = self
            .view
            .members
            .iter()
            .copied()
            .filter(|node| !before.members.contains(node))
            .collect();
        let gone: Vec<NodeId> = before
            .members
            .iter()
            .copied()
            .filter(|node| !self.view.members.contains(node))
            .collect();
        let lost: Vec<NodeId> =
            gone.iter().copied().filter(|node| suspected.contains(node)).collect();
        self.early_losses.view_begins(&joined, &lost, self.clock.now());
        self.newcomers.clone_from(&joined);
        self.begin(&joined, &gone)
    }

    /// Begins a view: passes its rings to the senders, connects to new members, and informs the
    /// application.
    pub(crate) fn begin(&mut self, joined: &[NodeId], gone: &[NodeId]) -> Result<(), Stopped> {
        self.has_cares = true;
        // The logs must know of the view before anything else happens in it.
        self.parts.logs.view_begins();
        self.record.begins(&self.view, self.parts.logs.notes())?;
        let is_free = logged_subgroups(&self.parts.participant.description).next().is_none();
        self.promising = Promising { is_free, ..Promising::default() };
        for (rank, cause) in self.lost_peers.take(self.view.id) {
            tracing::info!(view = %self.view.id, %rank, %cause, "a member was lost before its view began");
            match cause {
                LossCause::Denied => self.present.change(|node| node.denied_by(rank)),
                _ => self.present.change(|node| node.peer_lost(rank)),
            }
        }
        self.parts.statistics.installed();
        for sending in &mut self.parts.sending {
            let of = self.parts.participant.description.subgroups.get(sending.subgroup().index());
            if of.is_some_and(|of| of.reserved) && self.view.is_closed(sending.subgroup()) {
                sending.discard();
            }
            let is_paused = self.view.is_paused(sending.subgroup(), self.parts.participant.own);
            sending.begin(self.present.shared(), is_paused);
        }
        self.begin_large()?;
        self.connector.forget(gone);
        let below = self.view.members.iter().take(self.present.own().index());
        // Connections to members of the previous view exist already, or are being established.
        for node in
            below.filter(|node| joined.contains(node) && !self.parts.fabric.is_connected(**node))
        {
            self.connector.connect(*node, self.view.id);
        }
        self.connector.meets(self.view.id, joined);
        self.joiners.view_begins(&self.parts.participant.description, &mut self.present);
        self.leaving.view_begins();
        self.slow_members.clear();
        self.leave_when_free()?;
        let _span = self.parts.participant.enter_view_span(self.view.id);
        tracing::info!(view = %self.view.id, members = ?self.view.members, ?joined, ?gone, "a view begins");
        let Self { parts, view, .. } = self;
        let change = ViewChanged { view, own: parts.participant.own, joined, gone };
        guarded(|| {
            parts.application.view_changed(&change);
            Ok(())
        })?;
        // The upcall may have taken a while.
        self.clock.read_at_next_step();
        self.show_status();
        Ok(())
    }

    fn begin_large(&mut self) -> Result<(), Stopped> {
        let Self { present, parts, large, .. } = self;
        let Parts { participant, fabric, sending, .. } = parts;
        let ring_first =
            |subgroup| sending.iter().find(|one| one.subgroup() == subgroup)?.ring_first();
        Ok(large.begin(present, &participant.description, &*fabric, ring_first)?)
    }
}
