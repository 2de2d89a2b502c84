//! The names, ids and node ids of an overlay's processes.
//!
//! ```text
//! node ids: | replicas: group by group, by rank | clients, by number |
//! ```

use tramontane_core::ids::{ClientNumber, GroupId, NodeId, Rank};
use tramontane_core::tram::{Destinations, Overlay, ReplicaId};

use super::description::Description;

/// The names and ids of all processes in an overlay.
#[derive(Clone, Debug)]
pub struct Places {
    overlay: Overlay,
    names: Vec<String>,
}

/// A name that does not exist in the overlay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchPlace {
    /// A name that belongs to no replica.
    #[error("\"{name}\" is not a replica; use GROUP.RANK, such as {example}")]
    Replica {
        /// The name that was given.
        name: String,
        /// A name that does exist.
        example: String,
    },
    /// A name that belongs to no group.
    #[error("\"{name}\" is not a group of the overlay; use one of {known}")]
    Group {
        /// The name that was given.
        name: String,
        /// The names that do exist.
        known: String,
    },
}

impl Places {
    /// Derives the places from a description and its overlay.
    #[must_use]
    pub fn new(description: &Description, overlay: Overlay) -> Self {
        let names = description.groups.iter().map(|group| group.name.clone()).collect();
        Self { overlay, names }
    }

    /// Returns the overlay.
    #[must_use]
    pub const fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// Returns the node id of a replica.
    #[must_use]
    pub fn node(&self, replica: ReplicaId) -> NodeId {
        let before = (0..replica.group.0).map(|group| self.overlay.replicas(GroupId(group)));
        let first: u32 = before.map(u32::from).sum();
        NodeId(first + u32::from(replica.rank.0))
    }

    /// Returns the node id of a client.
    #[must_use]
    pub fn client_node(&self, client: ClientNumber) -> NodeId {
        NodeId(self.replica_count() + u32::from(client.0))
    }

    /// Returns the replica with a node id.
    #[must_use]
    pub fn replica(&self, node: NodeId) -> Option<ReplicaId> {
        self.replicas().find(|replica| self.node(*replica) == node)
    }

    /// Returns the client with a node id.
    #[must_use]
    pub fn client(&self, node: NodeId) -> Option<ClientNumber> {
        let number = u16::try_from(node.get().checked_sub(self.replica_count())?).ok()?;
        (number < self.overlay.limits().clients).then_some(ClientNumber(number))
    }

    /// Returns all replicas, in the order of their node ids.
    pub fn replicas(&self) -> impl Iterator<Item = ReplicaId> + '_ {
        self.overlay.all().iter().flat_map(|group| self.replicas_of(group))
    }

    /// Returns the replicas of a group, by rank.
    pub fn replicas_of(&self, group: GroupId) -> impl Iterator<Item = ReplicaId> + use<> {
        (0..self.overlay.replicas(group)).map(move |rank| ReplicaId { group, rank: Rank(rank) })
    }

    /// Returns all nodes that may ever exist.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.replica_count() + u32::from(self.overlay.limits().clients)).map(NodeId)
    }

    /// Returns the root group, which gives all clients their numbers.
    #[must_use]
    pub fn root(&self) -> GroupId {
        let mut groups = self.overlay.all().iter();
        groups.find(|group| self.overlay.parent(*group).is_none()).unwrap_or_default()
    }

    /// Returns the groups that order a message: its destinations, the lowest group above them, and
    /// the groups between. If any of these lacks a majority, the message is not answered.
    #[must_use]
    pub fn path(&self, destinations: Destinations) -> Destinations {
        let Some(first) = self.overlay.lowest_common_ancestor(destinations) else {
            return destinations;
        };
        let mut path = destinations.with(first);
        for group in destinations.iter() {
            let mut below = group;
            while below != first
                && let Some(parent) = self.overlay.parent(below)
            {
                path = path.with(parent);
                below = parent;
            }
        }
        path
    }

    /// Returns the name of a group.
    #[must_use]
    pub fn group_name(&self, group: GroupId) -> &str {
        self.names.get(group.index()).map_or("", String::as_str)
    }

    /// Returns the name of a replica, such as `g1.2`.
    #[must_use]
    pub fn name(&self, replica: ReplicaId) -> String {
        format!("{}.{}", self.group_name(replica.group), replica.rank)
    }

    /// Returns the replica with this name.
    ///
    /// # Errors
    /// [`NoSuchPlace::Replica`].
    pub fn replica_named(&self, name: &str) -> Result<ReplicaId, NoSuchPlace> {
        self.replicas().find(|replica| self.name(*replica) == name).ok_or_else(|| {
            let example = self.replicas().last().map(|replica| self.name(replica));
            NoSuchPlace::Replica { name: name.to_owned(), example: example.unwrap_or_default() }
        })
    }

    /// Checks that there is a replica with that group and rank.
    ///
    /// # Errors
    /// [`NoSuchPlace::Replica`].
    pub fn check(&self, replica: ReplicaId) -> Result<(), NoSuchPlace> {
        if replica.rank.0 < self.overlay.replicas(replica.group) {
            return Ok(());
        }
        self.replica_named(&replica.to_string()).map(|_| ())
    }

    /// Returns the groups with these names, as a message's destinations.
    ///
    /// # Errors
    /// [`NoSuchPlace::Group`].
    pub fn destinations<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Destinations, NoSuchPlace> {
        names.into_iter().try_fold(Destinations::default(), |set, name| {
            let found = self.overlay.all().iter().find(|group| self.group_name(*group) == name);
            let unknown =
                || NoSuchPlace::Group { name: name.to_owned(), known: self.names.join(", ") };
            Ok(set.with(found.ok_or_else(unknown)?))
        })
    }

    fn replica_count(&self) -> u32 {
        self.overlay.all().iter().map(|group| u32::from(self.overlay.replicas(group))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::description::Replicas;

    #[test]
    fn every_process_place_has_unique_id_and_name() {
        let mut description = Description::local("bank", &[None, Some(0), Some(0)], 3);
        description.groups[1].replicas = Replicas::Count(2);
        let overlay = description.overlay().expect("a tree");
        let places = Places::new(&description, overlay);
        let nodes: Vec<NodeId> = places.replicas().map(|replica| places.node(replica)).collect();
        assert_eq!(nodes, (0..8).map(NodeId).collect::<Vec<_>>());
        for replica in places.replicas() {
            assert_eq!(places.replica(places.node(replica)), Some(replica));
            assert_eq!(places.replica_named(&places.name(replica)), Ok(replica));
        }
        let last = ClientNumber(15);
        assert_eq!(places.client(places.client_node(last)), Some(last));
        assert_eq!(places.client(NodeId(8 + 16)), None);
        assert_eq!(places.client(NodeId(7)), None);
        assert_eq!(places.nodes().count(), 8 + 16);
        assert_eq!(places.name(places.replica(NodeId(4)).expect("there")), "g2.1");
        assert_eq!(places.root(), GroupId(0));
    }

    #[test]
    fn path_contains_groups_between_first_and_destinations() {
        // g1 is above g2 and g3; g4 is below g2.
        let parents = [None, Some(0), Some(0), Some(1)];
        let description = Description::local("bank", &parents, 3);
        let places = Places::new(&description, description.overlay().expect("a tree"));
        let path = |groups: &[u16]| {
            let all = groups.iter().map(|group| GroupId(*group));
            places.path(all.fold(Destinations::default(), Destinations::with)).0
        };
        assert_eq!(path(&[3]), 0b1000, "one group");
        assert_eq!(path(&[1, 3]), 0b1010, "the lowest group is a destination");
        assert_eq!(path(&[2, 3]), 0b1111, "g4 is reached from g1 through g2");
        assert_eq!(path(&[]), 0);
    }

    #[test]
    fn error_lists_known_overlay_names() {
        let description = Description::local("bank", &[None, Some(0)], 3);
        let places = Places::new(&description, description.overlay().expect("a tree"));
        assert_eq!(places.destinations(["g1", "g2"]).map(|set| set.0), Ok(3));
        let error = places.destinations(["g1", "g3"]).expect_err("unknown").to_string();
        assert!(error.contains("\"g3\"") && error.contains("g1, g2"), "{error}");
        assert!(places.replica_named("g1.3").is_err() && places.replica_named("g1").is_err());
    }
}
