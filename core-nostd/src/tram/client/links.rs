//! Which links a client has: one to each replica of its overlay.
//!
//! Requirement: TRM-8.

use crate::ids::{GroupId, Rank};
use crate::tram::link::LinkId;
use crate::tram::overlay::{Overlay, ReplicaId};

/// Which links a client has, by their places.
#[derive(Clone, Copy, Debug)]
pub struct ClientLinks<'o> {
    overlay: &'o Overlay,
}

impl<'o> ClientLinks<'o> {
    /// The links of an overlay's clients.
    #[must_use]
    pub const fn of(overlay: &'o Overlay) -> Self {
        Self { overlay }
    }

    /// How many links.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count())
    }

    pub(super) fn count(&self) -> u16 {
        let replicas = self.overlay.all().iter().map(|group| self.overlay.replicas(group));
        replicas.fold(0, u16::saturating_add)
    }

    /// Never: an overlay has a replica.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the link to a replica is in the list.
    #[must_use]
    pub fn find(&self, replica: ReplicaId) -> Option<LinkId> {
        let first = self.first(replica.group);
        let is_there = replica.rank.0 < self.overlay.replicas(replica.group);
        is_there.then(|| LinkId(first.saturating_add(replica.rank.0)))
    }

    /// Whose link is at a place.
    #[must_use]
    pub fn replica(&self, link: LinkId) -> Option<ReplicaId> {
        let mut rest = link.0;
        // bound: the groups of the overlay
        for group in self.overlay.all().iter() {
            let replicas = self.overlay.replicas(group);
            if rest < replicas {
                return Some(ReplicaId { group, rank: Rank(rest) });
            }
            rest = rest.saturating_sub(replicas);
        }
        None
    }

    fn first(&self, group: GroupId) -> u16 {
        let before = self.overlay.all().iter().take_while(|other| *other != group);
        before.fold(0, |first: u16, other| first.saturating_add(self.overlay.replicas(other)))
    }

    pub(super) fn of_group(&self, group: GroupId) -> impl Iterator<Item = LinkId> + use<> {
        let first = self.first(group);
        (first..first.saturating_add(self.overlay.replicas(group))).map(LinkId)
    }
}
