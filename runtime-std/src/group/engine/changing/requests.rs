//! Requests from other threads to the engine, handled between two steps.

use std::sync::atomic::Ordering;

use tramontane_control::Session;
use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_core::view::Status;

use super::Engine;
use crate::group::delivery::application::Application;
use crate::group::description::subgroup_change::{ChangedPart, SubgroupChange};
use crate::group::engine::parts::Parts;
use crate::group::engine::request::{Call, Request};
use crate::group::supply::joiners::states_of;
use crate::group::supply::queue::{Sink, Supplied};
use crate::group::supply::serve::LEAVES;
use crate::group::supply::wanted::Wanted;
use crate::member::Stopped;
use crate::poll::guarded;

impl<A: Application> Engine<A> {
    pub(crate) fn carry_out(&mut self, request: Request) -> Result<(), Stopped> {
        let description = &self.parts.participant.description;
        match request {
            Request::Connected { node, session, call } => self.connected(node, session, &call),
            Request::Supply { node, wanted, sink } => self.supply(node, wanted, sink)?,
            Request::Wish(ready) => self.joiners.wish(ready, description, &mut self.present),
            Request::Gone { node, led, queue } => {
                let was_let_in = self.joiners.gone(node, &queue, description, &mut self.present);
                let rank = self.view.rank_of(node).filter(|rank| *rank != self.present.own());
                if let Some(rank) = rank.filter(|_| led && was_let_in) {
                    self.present.change(|node| node.peer_lost(rank));
                }
            }
            Request::Change(change) => self.joiners.change(change, description, &mut self.present),
            Request::Leave => return self.begin_to_leave(),
        }
        Ok(())
    }

    /// Asks for a view in which this node pauses in the subgroups in which it has nothing to send,
    /// and sends in those in which it has.
    pub(crate) fn ask_to_pause(&mut self) {
        let Self { parts, present, joiners, clock, .. } = self;
        let (description, own) = (&parts.participant.description, parts.participant.own);
        for sending in &mut parts.sending {
            let subgroup = sending.subgroup();
            let Some(is_on) = sending.wish(clock.now()) else { continue };
            let of = description.subgroups.get(subgroup.index());
            let sender = of.and_then(|of| of.senders().iter().position(|node| *node == own.get()));
            if let Some(sender) = sender.and_then(|index| u16::try_from(index).ok()) {
                let change = SubgroupChange { subgroup, part: ChangedPart::Sender(sender), is_on };
                joiners.change(change, description, present);
            }
        }
    }

    /// Accepts a connection from a member's current process, and closes any other connection.
    fn connected(&mut self, node: NodeId, session: Session, call: &Call) {
        let is_expected = match call {
            Call::Own { is_ended } => !is_ended.load(Ordering::Relaxed),
            Call::Theirs { view } => self.connector.calls.is_expected(node, *view, self.view.id),
        };
        if is_expected {
            self.parts.fabric.connect(node, session);
        } else {
            tracing::info!(%node, ?call, "a connection of an earlier view is not used");
        }
    }

    fn supply(&mut self, node: NodeId, wanted: Wanted, sink: Sink) -> Result<(), Stopped> {
        let sink = sink.with_large(self.parts.participant.description.large_pool_bytes());
        if let Some(why) = self.refusal(node, &wanted) {
            sink.put(Supplied::NotNow(why));
            return Ok(());
        }
        let is_member = self.view.members.contains(&node);
        let Self { joiners, parts, present, admission, clock, view, .. } = self;
        let Parts { application, logs, fabric, participant, .. } = parts;
        guarded(|| {
            if !is_member {
                joiners.give_up(node, &participant.description, present);
            }
            let between = || {
                present.change(|node| node.show_life(clock.read(), &mut *fabric));
            };
            let states = states_of(&wanted, view.id, logs, application, between);
            if is_member {
                joiners.supply_late(node, states, sink, admission);
            } else {
                joiners.begin(node, states, sink);
            }
            Ok(())
        })
    }

    /// Returns the reason why a node cannot be supplied with these subgroups now, or `None` if it
    /// can.
    fn refusal(&mut self, node: NodeId, wanted: &Wanted) -> Option<String> {
        let Wanted { subgroups, records } = wanted;
        let description = &self.parts.participant.description;
        let own = self.parts.participant.own;
        let is_ours = |subgroup: &SubgroupId| {
            self.view.subgroup_members(description, *subgroup).contains(&own)
        };
        let why = if !description.has_node(node) {
            Some("it is not in the group file")
        } else if self.present.read(|node| node.status()) != Status::Steady {
            Some("the view is changing")
        } else if !subgroups.iter().all(is_ours) {
            Some("this member does not belong to all of the subgroups")
        } else if !records.iter().all(|(of, from)| self.parts.logs.reaches(*of, *from)) {
            Some("this member has not logged that many records")
        } else if self.view.members.contains(&node) {
            self.late_refusal(node, subgroups)
        } else if self.is_leaving() {
            Some(LEAVES)
        } else {
            return self.early_losses.refusal(node, self.clock.now());
        };
        why.map(str::to_owned)
    }

    /// Returns the reason why a node admitted by the current view cannot be supplied, if there is
    /// one. The state is that of the view's beginning as long as nothing has been delivered in the
    /// view, and nothing can be delivered before the node is ready.
    fn late_refusal(&mut self, node: NodeId, subgroups: &[SubgroupId]) -> Option<&'static str> {
        let rank = self.view.rank_of(node).filter(|_| self.newcomers.contains(&node));
        if rank.is_none_or(|rank| self.present.has_come(rank)) {
            return Some("it is still a member, or another process uses its id");
        }
        let delivered = |subgroup: &SubgroupId| {
            self.present
                .read(|node| node.node().frontiers(*subgroup))
                .unwrap_or_default()
                .delivered
                .0
        };
        let is_at_beginning = subgroups.iter().all(|subgroup| delivered(subgroup) == 0);
        (!is_at_beginning).then_some("the view that admitted it has continued without it")
    }
}
