//! The overlay: the tree of groups, in which parents pass messages on to their children (TRM-1).
//!
//! All processes know the same overlay, and its digest is part of every view's plan. Sets of groups
//! are 64-bit words, so routing takes a few operations per child.
//!
//! # Invariants
//! - The groups form one tree. No walk in the tree is longer than the number of groups.
//! - The reach of a group contains the group itself and the reach of each of its children.
//!
//! Source: TRAM, section 4.

use crate::ids::{GroupId, Rank, index_from_u16, u16_from_index, u64_from_index};
use crate::layout::{ByteOrder, Digest};

/// Maximum number of groups in an overlay: a set of groups is one cell.
pub const GROUPS_MAX: usize = 64;

/// Maximum number of children of one group.
pub const CHILDREN_MAX: usize = 16;

/// Maximum number of replicas in one group.
pub const REPLICAS_MAX: usize = 16;

/// Version of the formats that processes write to each other, in rows and regions. Increase it
/// whenever one of them changes: it is part of the digest, so builds with different versions do not
/// connect.
const FORMAT: u64 = 3;

/// One group of an overlay, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Group that passes messages on to this one. The root has none.
    pub parent: Option<GroupId>,
    /// Number of replicas. A minority of them may fail.
    pub replicas: u16,
}

/// Sizes that are the same for all processes of an overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of clients at a time.
    pub clients: u16,
    /// Number of entries in a replica's log.
    pub log_entries: u32,
    /// Maximum number of messages from one client that one group has not taken yet.
    pub client_window: u32,
    /// Maximum number of messages that a parent has passed on but that a replica of its child has
    /// not taken yet.
    pub parent_window: u32,
    /// Size in bytes of the largest message.
    pub payload_max: u32,
}

/// A set of groups: the destinations of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Destinations(pub u64);

impl Destinations {
    /// Returns the set of one group.
    #[must_use]
    pub const fn of(group: GroupId) -> Self {
        match 1_u64.checked_shl(widen(group.0)) {
            Some(bit) => Self(bit),
            None => Self(0),
        }
    }

    /// Returns the set with another group added.
    #[must_use]
    pub const fn with(self, group: GroupId) -> Self {
        Self(self.0 | Self::of(group).0)
    }

    /// Returns whether a group is in the set.
    #[must_use]
    pub const fn contains(self, group: GroupId) -> bool {
        self.0 & Self::of(group).0 != 0
    }

    /// Returns whether any group is in both sets.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether all groups of this set are in the other set.
    #[must_use]
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the number of groups.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns the groups in id order.
    pub fn iter(self) -> impl Iterator<Item = GroupId> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let group = u16::try_from(rest.trailing_zeros()).ok().filter(|_| rest != 0)?;
            rest &= rest.wrapping_sub(1);
            Some(GroupId(group))
        })
    }
}

#[allow(clippy::as_conversions)]
const fn widen(value: u16) -> u32 {
    value as u32
}

/// Reason why a list of groups is not an overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum OverlayError {
    /// There is no group.
    NoGroups,
    /// There are more than [`GROUPS_MAX`] groups.
    TooManyGroups,
    /// A group has no replica, or more than [`REPLICAS_MAX`].
    Replicas(GroupId),
    /// A group's parent is not in the list.
    UnknownParent(GroupId),
    /// A group is its own ancestor, so its path upwards never reaches the root.
    Cycle(GroupId),
    /// There is a second group without a parent.
    SecondRoot(GroupId),
    /// A group has more than [`CHILDREN_MAX`] children.
    TooManyChildren(GroupId),
    /// There are no clients, a window or a log has no room, or a size is more than memory can
    /// address.
    Limits,
}

impl core::fmt::Display for OverlayError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoGroups => out.write_str("an overlay needs at least one group"),
            Self::TooManyGroups => write!(out, "an overlay has at most {GROUPS_MAX} groups"),
            Self::Replicas(group) => {
                write!(out, "group {group} needs 1 to {REPLICAS_MAX} replicas")
            }
            Self::UnknownParent(group) => write!(
                out,
                "the parent of group {group} is unknown; \
                                                       name a group of the overlay"
            ),
            Self::Cycle(group) => write!(
                out,
                "group {group} is its own ancestor; change a parent so that the groups form a tree"
            ),
            Self::SecondRoot(group) => {
                write!(out, "group {group} is a second root; give it a parent")
            }
            Self::TooManyChildren(group) => {
                write!(out, "group {group} has more than {CHILDREN_MAX} children")
            }
            Self::Limits => out.write_str("a limit of the overlay is zero or too large"),
        }
    }
}

impl core::error::Error for OverlayError {}

/// A group with its derived data.
#[derive(Clone, Copy, Debug)]
struct Placed {
    group: Group,
    reach: Destinations,
    depth: u16,
}

/// A checked tree of groups.
#[derive(Clone, Debug)]
pub struct Overlay {
    groups: heapless::Vec<Placed, GROUPS_MAX>,
    limits: Limits,
    references_from: u32,
    answer_max: u32,
    digest: u64,
}

impl Overlay {
    /// Checks a list of groups.
    ///
    /// # Errors
    /// Fails with the first error found and its group.
    pub fn new(groups: &[Group], limits: Limits) -> Result<Self, OverlayError> {
        check_limits(&limits)?;
        if groups.is_empty() {
            return Err(OverlayError::NoGroups);
        }
        if groups.len() > GROUPS_MAX {
            return Err(OverlayError::TooManyGroups);
        }
        let mut placed = heapless::Vec::new();
        let mut root = None;
        // bound: GROUPS_MAX
        for (id, group) in ids(groups) {
            let count = index_from_u16(group.replicas);
            if count == 0 || count > REPLICAS_MAX {
                return Err(OverlayError::Replicas(id));
            }
            if group.parent.is_none() && root.replace(id).is_some() {
                return Err(OverlayError::SecondRoot(id));
            }
            let depth = depth_of(groups, id)?;
            let one = Placed { group, reach: Destinations::default(), depth };
            placed.push(one).map_err(|_| OverlayError::TooManyGroups)?;
        }
        // bound: GROUPS_MAX
        for (id, _) in ids(groups) {
            add_to_reach(&mut placed, id);
        }
        let mut overlay =
            Self { groups: placed, limits, references_from: 0, answer_max: 0, digest: 0 };
        // bound: GROUPS_MAX
        for (id, _) in ids(groups) {
            if usize::from(overlay.children_count(id)) > CHILDREN_MAX {
                return Err(OverlayError::TooManyChildren(id));
            }
        }
        overlay.digest = overlay.compute_digest();
        Ok(overlay)
    }

    /// Returns the number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns whether there are no groups, which is never the case.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the sizes that are the same for all processes.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Sets the length at and above which clients themselves send a message's payload to each
    /// replica, and entries refer to it (TRM-9). If zero, entries carry all bytes.
    #[must_use]
    pub fn with_references(mut self, references_from: u32) -> Self {
        self.references_from = references_from;
        self.digest = self.compute_digest();
        self
    }

    /// Returns the length in bytes at and above which entries refer to a message's payload. Zero
    /// means never.
    #[must_use]
    pub const fn references_from(&self) -> u32 {
        self.references_from
    }

    /// Lets replicas answer with up to this number of bytes, in addition to one byte. Each replica
    /// keeps a window of such answers for each client (TRM-7).
    #[must_use]
    pub fn with_answers(mut self, answer_max: u32) -> Self {
        self.answer_max = answer_max;
        self.digest = self.compute_digest();
        self
    }

    /// Returns the maximum length of an answer, in bytes. Zero means that answers are single bytes.
    #[must_use]
    pub const fn answer_max(&self) -> u32 {
        self.answer_max
    }

    /// Returns whether a message that is ordered first at the group `first` is also ordered at
    /// `group`, on its path down.
    pub(super) fn handles(
        &self,
        group: GroupId,
        first: GroupId,
        destinations: Destinations,
    ) -> bool {
        self.reach(first).contains(group) && self.reach(group).meets(destinations)
    }

    /// Returns the digest that distinguishes this overlay from others: groups, limits, the format
    /// of rows, and the processor's byte order.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the set of all groups.
    #[must_use]
    pub fn all(&self) -> Destinations {
        ids(&self.groups).fold(Destinations(0), |all, (id, _)| all.with(id))
    }

    /// Returns the number of replicas of a group, or zero if there is no such group.
    #[must_use]
    pub fn replicas(&self, group: GroupId) -> u16 {
        self.groups.get(group.index()).map_or(0, |placed| placed.group.replicas)
    }

    /// Returns the size of a quorum of a group. Any two quorums share a replica.
    #[must_use]
    pub fn quorum(&self, group: GroupId) -> u16 {
        (self.replicas(group) >> 1).saturating_add(1)
    }

    /// Returns the parent of a group.
    #[must_use]
    pub fn parent(&self, group: GroupId) -> Option<GroupId> {
        self.groups.get(group.index()).and_then(|placed| placed.group.parent)
    }

    /// Returns the children of a group in id order.
    pub fn children(&self, group: GroupId) -> impl Iterator<Item = GroupId> + '_ {
        let of_group = move |placed: &Placed| placed.group.parent == Some(group);
        ids(&self.groups).filter(move |(_, placed)| of_group(placed)).map(|(id, _)| id)
    }

    /// Returns the number of children of a group.
    #[must_use]
    pub fn children_count(&self, group: GroupId) -> u16 {
        self.children(group).fold(0, |count, _| count.saturating_add(1))
    }

    /// Returns the group and all groups below it.
    #[must_use]
    pub fn reach(&self, group: GroupId) -> Destinations {
        self.groups.get(group.index()).map_or(Destinations(0), |placed| placed.reach)
    }

    /// Returns the lowest group from which all destinations can be reached, or `None` if there is
    /// no destination, or if one of them is not a group of the overlay.
    #[must_use]
    pub fn lowest_common_ancestor(&self, destinations: Destinations) -> Option<GroupId> {
        if destinations == Destinations(0) {
            return None;
        }
        let reaching = ids(&self.groups).filter(|(_, placed)| destinations.is_within(placed.reach));
        reaching.max_by_key(|(_, placed)| placed.depth).map(|(id, _)| id)
    }

    fn compute_digest(&self) -> u64 {
        let limits = &self.limits;
        let sizes = [
            FORMAT,
            u64::from(matches!(ByteOrder::OWN, ByteOrder::Big)),
            u64::from(limits.clients),
            u64::from(limits.log_entries),
            u64::from(limits.client_window),
            u64::from(limits.parent_window),
            u64::from(limits.payload_max),
            u64_from_index(self.groups.len()),
        ];
        let mut digest = Digest::new();
        // bound: eight sizes
        for size in sizes {
            digest = digest.with(size);
        }
        if self.references_from != 0 {
            digest = digest.with(u64::from(self.references_from));
        }
        if self.answer_max != 0 {
            digest = digest.with(u64::MAX).with(u64::from(self.answer_max));
        }
        // bound: the groups of the overlay
        for placed in &self.groups {
            let parent = placed.group.parent.map_or(u64::MAX, |parent| u64::from(parent.0));
            digest = digest.with(parent).with(u64::from(placed.group.replicas));
        }
        digest.get()
    }
}

/// Returns the elements of a list with their group ids. No overlay has more than [`GROUPS_MAX`]
/// groups.
fn ids<T: Copy>(groups: &[T]) -> impl Iterator<Item = (GroupId, T)> + '_ {
    (0..64_u16).map(GroupId).zip(groups.iter().copied())
}

fn check_limits(limits: &Limits) -> Result<(), OverlayError> {
    let counts =
        [limits.log_entries, limits.client_window, limits.parent_window, limits.payload_max];
    let is_wrong = |count: u32| count == 0 || count > 1 << 30;
    if counts.into_iter().any(is_wrong) || limits.clients == 0 {
        return Err(OverlayError::Limits);
    }
    Ok(())
}

/// Returns the number of steps from the root down to a group.
fn depth_of(groups: &[Group], id: GroupId) -> Result<u16, OverlayError> {
    let mut at = id;
    // bound: GROUPS_MAX
    for depth in 0..GROUPS_MAX {
        let group = groups.get(at.index()).ok_or(OverlayError::UnknownParent(id))?;
        match group.parent {
            None => return Ok(u16_from_index(depth).unwrap_or(u16::MAX)),
            Some(parent) => at = parent,
        }
    }
    Err(OverlayError::Cycle(id))
}

/// Adds a group to its own reach, and to the reach of all groups above it.
fn add_to_reach(placed: &mut heapless::Vec<Placed, GROUPS_MAX>, id: GroupId) {
    let mut at = Some(id);
    // bound: the depth of the group: `depth_of` has found no cycle above it
    while let Some(one) = at.and_then(|at| placed.get_mut(at.index())) {
        one.reach = one.reach.with(id);
        at = one.group.parent;
    }
}

/// A replica, named by its group and its rank in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ReplicaId {
    /// The group.
    pub group: GroupId,
    /// Rank in the group.
    pub rank: Rank,
}

impl core::fmt::Display for ReplicaId {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "g{}.{}", self.group, self.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { clients: 4, log_entries: 8, client_window: 4, parent_window: 4, payload_max: 64 };

    fn tree(parents: &[Option<u16>]) -> Result<Overlay, OverlayError> {
        let groups: std::vec::Vec<Group> = parents
            .iter()
            .map(|parent| Group { parent: parent.map(GroupId), replicas: 3 })
            .collect();
        Overlay::new(&groups, LIMITS)
    }

    fn set(groups: &[u16]) -> Destinations {
        groups.iter().fold(Destinations(0), |set, group| set.with(GroupId(*group)))
    }

    #[test]
    fn message_is_ordered_at_its_lowest_common_ancestor() {
        //       0
        //     1   2
        //    3 4  5
        let overlay = tree(&[None, Some(0), Some(0), Some(1), Some(1), Some(2)]).expect("a tree");
        let ancestor = |groups: &[u16]| overlay.lowest_common_ancestor(set(groups)).map(|g| g.0);
        assert_eq!(ancestor(&[3]), Some(3));
        assert_eq!(ancestor(&[3, 4]), Some(1));
        assert_eq!(ancestor(&[1, 4]), Some(1));
        assert_eq!(ancestor(&[3, 5]), Some(0));
        assert_eq!(ancestor(&[2, 5]), Some(2));
        assert_eq!(ancestor(&[]), None);
        assert_eq!(ancestor(&[3, 6]), None, "which is no group");
        assert_eq!(overlay.reach(GroupId(1)), set(&[1, 3, 4]));
        assert!(overlay.children(GroupId(1)).eq([GroupId(3), GroupId(4)]));
    }

    #[test]
    fn overlay_that_is_not_a_tree_is_refused() {
        assert_eq!(tree(&[]).err(), Some(OverlayError::NoGroups));
        assert_eq!(tree(&[None, None]).err(), Some(OverlayError::SecondRoot(GroupId(1))));
        assert_eq!(tree(&[None, Some(7)]).err(), Some(OverlayError::UnknownParent(GroupId(1))));
        let cycle = tree(&[None, Some(2), Some(1)]).err();
        assert_eq!(cycle, Some(OverlayError::Cycle(GroupId(1))));
        assert_eq!(tree(&[Some(0)]).err(), Some(OverlayError::Cycle(GroupId(0))));
        let wide: std::vec::Vec<_> =
            core::iter::once(None).chain(core::iter::repeat_n(Some(0), 17)).collect();
        assert_eq!(tree(&wide).err(), Some(OverlayError::TooManyChildren(GroupId(0))));
        let many: std::vec::Vec<_> =
            core::iter::once(None).chain((0..64).map(|g| Some(g >> 1))).collect();
        assert_eq!(tree(&many).err(), Some(OverlayError::TooManyGroups));
        let empty = Overlay::new(&[Group { parent: None, replicas: 0 }], LIMITS).err();
        assert_eq!(empty, Some(OverlayError::Replicas(GroupId(0))));
        let none = Limits { client_window: 0, ..LIMITS };
        let group = Group { parent: None, replicas: 1 };
        assert_eq!(Overlay::new(&[group], none).err(), Some(OverlayError::Limits));
        for (entries, is_refused) in [(1 << 30, false), ((1 << 30) + 1, true)] {
            let limits = Limits { log_entries: entries, ..LIMITS };
            assert_eq!(Overlay::new(&[group], limits).is_err(), is_refused, "{entries}");
        }
    }

    #[test]
    fn any_changed_overlay_field_changes_the_digest() {
        let of = |parents: &[Option<u16>]| tree(parents).map(|overlay| overlay.digest());
        assert_ne!(of(&[None, Some(0), Some(0)]), of(&[None, Some(0), Some(1)]));
        assert_eq!(of(&[None, Some(0)]), of(&[None, Some(0)]));
        let group = Group { parent: None, replicas: 1 };
        let larger = Limits { payload_max: 65, ..LIMITS };
        let digest = |limits| Overlay::new(&[group], limits).map(|overlay| overlay.digest());
        assert_ne!(digest(LIMITS), digest(larger));
    }
}
