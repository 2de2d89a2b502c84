//! What other threads ask of the engine, carried out between two steps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_core::view::Status;
use tramontane_mesh::Talk;

use super::engine::{Engine, Parts};
use super::outside::Call;
use super::queue::{Sink, Supplied};
use super::replica::Replica;
use super::request::Request;
use crate::member::Stopped;

impl<R: Replica> Engine<R> {
    pub(super) fn carry_out(&mut self, request: Request) -> Result<(), Stopped> {
        match request {
            Request::Connected { node, talk, call } => self.connected(node, talk, &call),
            Request::Supply { node, subgroups, sink } => self.supply(node, subgroups, sink)?,
            Request::Wish { node } => self.joiners.wish(node, &mut self.present),
            Request::Gone { node, led } => {
                let was_let_in = self.joiners.gone(node, &mut self.present);
                let rank = self.view.rank_of(node).filter(|rank| *rank != self.present.own());
                if let Some(rank) = rank.filter(|_| led && was_let_in) {
                    self.present.peer_lost(rank);
                }
            }
            Request::Leave => {
                self.is_leaving = true;
                if self.view.members.len() == 1 {
                    return Err(self.end(Stopped::Left));
                }
                self.present.leave();
            }
        }
        Ok(())
    }

    /// Takes a connection that is of a member's present process; any other one is closed.
    fn connected(&mut self, node: NodeId, talk: Talk, call: &Call) {
        let is_expected = match call {
            Call::Own { is_ended } => !is_ended.load(Ordering::Relaxed),
            Call::Theirs { view } => self.parts.outside.calls.is_expected(node, *view, self.view.id),
        };
        if is_expected {
            self.parts.fabric.connect(node, talk);
        } else {
            tracing::info!(%node, ?call, "a connection of an earlier view is not used");
        }
    }

    fn supply(&mut self, node: NodeId, subgroups: Vec<SubgroupId>, sink: Sink) -> Result<(), Stopped> {
        let description = &self.parts.membership.description;
        let own = self.parts.membership.own;
        let is_ours =
            |subgroup: &SubgroupId| self.view.subgroup_members(description, *subgroup).contains(&own);
        let refusal = if !description.has_node(node) {
            Some("it is not in the group file")
        } else if self.view.members.contains(&node) {
            Some("it is a member still, or another process has its id")
        } else if self.present.status() != Status::Steady || self.is_leaving {
            Some("the view is changing")
        } else if !subgroups.iter().all(is_ours) {
            Some("this member does not belong to all of the subgroups")
        } else {
            None
        };
        if let Some(why) = refusal {
            sink.put(Supplied::NotNow(why.to_owned()));
            return Ok(());
        }
        let sink = sink.with_large(description.large_pool_bytes());
        let Self { joiners, parts, present, clock, .. } = self;
        let Parts { replica, fabric, .. } = parts;
        let begun = catch_unwind(AssertUnwindSafe(|| {
            joiners.begin(node, subgroups, sink, replica, || {
                present.show_life(clock.read(), &mut fabric.fabric);
            });
        }));
        begun.map_err(|payload| parts.membership.ending.stop(Stopped::panicked(payload.as_ref())))
    }
}
