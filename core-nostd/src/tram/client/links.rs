//! The links of a client: one to each replica of its overlay.
//!
//! Requirement: TRM-8.

use crate::ids::{GroupId, Rank};
use crate::tram::link::LinkId;
use crate::tram::overlay::{Overlay, ReplicaId};

/// The links of a client, by index.
#[derive(Clone, Copy, Debug)]
pub struct ClientLinks<'o> {
    overlay: &'o Overlay,
}

impl<'o> ClientLinks<'o> {
    /// Returns the links of an overlay's clients.
    #[must_use]
    pub const fn of(overlay: &'o Overlay) -> Self {
        Self { overlay }
    }

    /// Returns the number of links.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count())
    }

    pub(super) fn count(&self) -> u16 {
        let replicas = self.overlay.all().iter().map(|group| self.overlay.replicas(group));
        replicas.fold(0, u16::saturating_add)
    }

    /// Returns whether there are no links, which is never the case: an overlay has at least one
    /// replica.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the link to a replica.
    #[must_use]
    pub fn find(&self, replica: ReplicaId) -> Option<LinkId> {
        let first = self.first(replica.group);
        let is_there = replica.rank.0 < self.overlay.replicas(replica.group);
        is_there.then(|| LinkId(first.saturating_add(replica.rank.0)))
    }

    /// Returns the replica at the other end of a link.
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
