//! Links: the views of two members that a replica or a client shares with others.
//!
//! Each process has a list of links in a fixed order, so a link's index determines the process at
//! the other end:
//!
//! ```text
//! replica: | own group, by rank | parent's replicas | replicas of each child | clients |
//! client:  | replicas of each group, by rank |
//! ```
//!
//! A host opens a view, attaches it, and detaches it when the peer is lost. A returning peer has a
//! new view. The memory that the host lends for each step is a [`Memory`].
//!
//! Requirements: ORD-4, TRM-3, TRM-8.

use super::overlay::{CHILDREN_MAX, Overlay, ReplicaId};
use super::progress::Halt;
use crate::ids::{ClientNumber, GroupId, Rank, Time, ViewId, u16_from_index};
use crate::memory::{Row, RowWriter};

/// A link's index in a process's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LinkId(pub u16);

impl LinkId {
    /// Returns the link as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        crate::ids::index_from_u16(self.0)
    }
}

/// The memory that a host lends for a step.
pub trait Memory {
    /// Returns the local region with the log. A client has no log, and is never asked for one.
    fn log(&self) -> RowWriter<'_>;

    /// Returns the local row of a link's view, and the peer's row, or `None` if the link is not
    /// attached.
    fn link(&self, link: LinkId) -> Option<(RowWriter<'_>, Row<'_>)>;
}

impl<M: Memory + ?Sized> Memory for &M {
    fn log(&self) -> RowWriter<'_> {
        (**self).log()
    }

    fn link(&self, link: LinkId) -> Option<(RowWriter<'_>, Row<'_>)> {
        (**self).link(link)
    }
}

/// A two-member view that a host has opened for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Attachment {
    /// The view.
    pub view: ViewId,
    /// Peer's rank in the view.
    pub peer: Rank,
    /// Incarnation of the peer, as the peer reported when the two connected.
    pub incarnation: u32,
}

/// The process at the other end of a replica's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LinkRole {
    /// A replica of the local group.
    Peer(Rank),
    /// A replica of the parent.
    Parent(Rank),
    /// A replica of a child.
    Child {
        /// Index of the child.
        child: u16,
        /// Rank of the replica.
        rank: Rank,
    },
    /// A client.
    Client(ClientNumber),
}

/// The stage of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Stage {
    /// No view is attached.
    #[default]
    Absent,
    /// A view is attached, but the peer's memory is not available yet.
    Waiting,
    /// Both ends are available.
    Ready,
    /// The fabric has reported the peer as lost.
    Lost,
}

/// A process's state for a link to a process of any kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attached {
    pub(super) stage: Stage,
    pub(super) view: ViewId,
    pub(super) peer: Rank,
    pub(super) incarnation: u32,
    /// Time since which the link is in this stage.
    pub(super) since: Time,
    /// Whether the control line of the local row must be posted.
    pub(super) dirty: bool,
}

impl Attached {
    pub(super) const fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready)
    }
}

/// The links of a replica, by index.
#[derive(Clone, Debug)]
pub struct ReplicaLinks {
    peers: u16,
    parents: u16,
    children: heapless::Vec<Below, CHILDREN_MAX>,
    clients: u16,
}

/// The links to a child's replicas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Below {
    pub(super) group: GroupId,
    first: u16,
    replicas: u16,
}

impl ReplicaLinks {
    /// Returns the links of a group's replicas.
    #[must_use]
    pub fn of(overlay: &Overlay, group: GroupId) -> Self {
        let peers = overlay.replicas(group);
        let parents = overlay.parent(group).map_or(0, |parent| overlay.replicas(parent));
        let mut first = peers.saturating_add(parents);
        let mut children = heapless::Vec::new();
        // bound: the children
        for child in overlay.children(group) {
            let replicas = overlay.replicas(child);
            // The push cannot fail: no group of an overlay has more children.
            let _ = children.push(Below { group: child, first, replicas });
            first = first.saturating_add(replicas);
        }
        Self { peers, parents, children, clients: overlay.limits().clients }
    }

    /// Returns the number of links.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.first_client()).saturating_add(usize::from(self.clients))
    }

    /// Returns whether there are no links, which is never the case: a replica has a link for each
    /// client.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the process at the other end of a link.
    #[must_use]
    pub fn role(&self, link: LinkId) -> Option<LinkRole> {
        let mut rest = link.0;
        if rest < self.peers {
            return Some(LinkRole::Peer(Rank(rest)));
        }
        rest = rest.saturating_sub(self.peers);
        if rest < self.parents {
            return Some(LinkRole::Parent(Rank(rest)));
        }
        // bound: the children
        for (child, below) in self.children.iter().enumerate() {
            let rank = link.0.checked_sub(below.first).filter(|rank| *rank < below.replicas);
            if let (Some(rank), Some(child)) = (rank, u16_from_index(child)) {
                return Some(LinkRole::Child { child, rank: Rank(rank) });
            }
        }
        let client = link.0.checked_sub(self.first_client())?;
        (client < self.clients).then_some(LinkRole::Client(ClientNumber(client)))
    }

    /// Returns the link to a process.
    #[must_use]
    pub fn find(&self, role: LinkRole) -> Option<LinkId> {
        let link = match role {
            LinkRole::Peer(rank) => (rank.0 < self.peers).then_some(rank.0),
            LinkRole::Parent(rank) => {
                (rank.0 < self.parents).then(|| self.peers.saturating_add(rank.0))
            }
            LinkRole::Child { child, rank } => self
                .children
                .get(usize::from(child))
                .filter(|below| rank.0 < below.replicas)
                .map(|below| below.first.saturating_add(rank.0)),
            LinkRole::Client(number) => {
                (number.0 < self.clients).then(|| self.first_client().saturating_add(number.0))
            }
        };
        link.map(LinkId)
    }

    /// Returns the link to a replica of the local group, of its parent or of a child.
    #[must_use]
    pub fn find_replica(
        &self,
        overlay: &Overlay,
        own: GroupId,
        other: ReplicaId,
    ) -> Option<LinkId> {
        if other.group == own {
            return self.find(LinkRole::Peer(other.rank));
        }
        if overlay.parent(own) == Some(other.group) {
            return self.find(LinkRole::Parent(other.rank));
        }
        let child = self.children.iter().position(|below| below.group == other.group)?;
        self.find(LinkRole::Child { child: u16_from_index(child)?, rank: other.rank })
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.peers).map(LinkId)
    }

    pub(super) fn parents(&self) -> impl Iterator<Item = LinkId> + use<> {
        (self.peers..self.peers.saturating_add(self.parents)).map(LinkId)
    }

    pub(super) fn child(&self, child: usize) -> impl Iterator<Item = LinkId> + use<> {
        let below = self.children.get(child);
        let (first, replicas) = below.map_or((0, 0), |below| (below.first, below.replicas));
        (first..first.saturating_add(replicas)).map(LinkId)
    }

    pub(super) fn client(&self, number: ClientNumber) -> LinkId {
        LinkId(self.first_client().saturating_add(number.0))
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = ClientNumber> + use<> {
        (0..self.clients).map(ClientNumber)
    }

    /// Returns the links of the processes that feed this replica: the replicas of the parent, and
    /// the clients.
    pub(super) fn feeders(&self) -> impl Iterator<Item = LinkId> + use<> {
        let first = self.first_client();
        let clients = (first..first.saturating_add(self.clients)).map(LinkId);
        self.parents().chain(clients)
    }

    pub(super) fn below(&self) -> &[Below] {
        &self.children
    }

    pub(super) fn all(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.first_client().saturating_add(self.clients)).map(LinkId)
    }

    fn first_client(&self) -> u16 {
        let children = self.children.last().map(|below| below.first.saturating_add(below.replicas));
        children.unwrap_or(self.peers.saturating_add(self.parents))
    }
}

/// Stores a cell of a local row.
pub(super) fn put(row: RowWriter<'_>, offset: usize, value: u64) -> Result<(), Halt> {
    row.cell(offset)?.publish(value);
    Ok(())
}

/// Returns the rank of a peer of the local group, from its link.
pub(super) const fn rank_of(link: LinkId) -> Rank {
    Rank(link.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tram::overlay::{Group, Limits};

    #[test]
    fn each_link_has_one_role() {
        let limits = Limits {
            clients: 5,
            log_entries: 2,
            client_window: 1,
            parent_window: 1,
            payload_max: 64,
        };
        let of = |parent: Option<u16>, replicas| Group { parent: parent.map(GroupId), replicas };
        let groups = [of(None, 3), of(Some(0), 2), of(Some(1), 4), of(Some(1), 1)];
        let overlay = Overlay::new(&groups, limits).expect("a tree");
        for group in 0..4 {
            let links = ReplicaLinks::of(&overlay, GroupId(group));
            for link in 0..u16_from_index(links.len()).expect("few") {
                let role = links.role(LinkId(link)).expect("a role");
                assert_eq!(links.find(role), Some(LinkId(link)));
            }
            assert_eq!(links.role(LinkId(u16_from_index(links.len()).expect("few"))), None);
        }
        let links = ReplicaLinks::of(&overlay, GroupId(1));
        assert_eq!(links.len(), 2 + 3 + 4 + 1 + 5);
        let child = ReplicaId { group: GroupId(3), rank: Rank(0) };
        let role = LinkRole::Child { child: 1, rank: Rank(0) };
        assert_eq!(links.find_replica(&overlay, GroupId(1), child), links.find(role));
        let grandparent = ReplicaId { group: GroupId(0), rank: Rank(2) };
        assert_eq!(links.find_replica(&overlay, GroupId(2), grandparent), None);
        assert_eq!(links.client(ClientNumber(4)), LinkId(14));
    }

    /// If the process existed, its link after the last of one kind would be the first of the next
    /// kind, which belongs to another process.
    #[test]
    fn nonexistent_process_has_no_link() {
        let limits = Limits {
            clients: 5,
            log_entries: 2,
            client_window: 1,
            parent_window: 1,
            payload_max: 64,
        };
        let of = |parent: Option<u16>, replicas| Group { parent: parent.map(GroupId), replicas };
        let groups = [of(None, 3), of(Some(0), 2), of(Some(1), 4)];
        let overlay = Overlay::new(&groups, limits).expect("a tree");
        let links = ReplicaLinks::of(&overlay, GroupId(1));
        let none = [
            LinkRole::Peer(Rank(2)),
            LinkRole::Parent(Rank(3)),
            LinkRole::Child { child: 0, rank: Rank(4) },
            LinkRole::Child { child: 1, rank: Rank(0) },
            LinkRole::Client(ClientNumber(5)),
        ];
        assert_eq!(none.map(|role| links.find(role)), [None; 5]);
    }
}
