//! Detection, by an engine, of the members that hold the others back.

use std::time::Instant;

use tramontane_core::ids::{Rank, SubgroupId};
use tramontane_core::view::Status;

use super::Engine;
use crate::group::delivery::application::Application;
use crate::group::status::slow_members::Slow;

impl<A: Application> Engine<A> {
    /// Finds members that hold the others back, and removes those that do so for longer than the
    /// group allows (EXT-2).
    pub(crate) fn look_for_slow(&mut self) {
        let Self { present, view, parts, slow_members, slow, .. } = self;
        slow.clear();
        if present.read(|node| node.status()) != Status::Steady {
            return slow_members.clear();
        }
        let (participant, now) = (&parts.participant, Instant::now());
        for (id, _) in (0..).map(SubgroupId).zip(&participant.description.subgroups) {
            let node = |(rank, of): (Rank, _)| Some((*view.members.get(rank.index())?, of));
            let members = present.frontiers_of_all(id).filter_map(node);
            slow_members.look(id, members, now, slow);
        }
        // A member that is itself slow does not judge others.
        let Some(bound) = participant.eviction_bound() else { return };
        if slow.iter().any(|slow| slow.node == participant.own) {
            return;
        }
        for Slow { node, holds, lasts, .. } in slow.iter().filter(|slow| slow.lasts >= bound) {
            if let Some(rank) = view.rank_of(*node) {
                tracing::warn!(%node, ?holds, ?lasts, "a member is too slow, and is evicted");
                present.change(|node| node.peer_lost(rank));
            }
        }
    }
}
