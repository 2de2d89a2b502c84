//! The walk over the links of the subgroups that changed (BAT-3, BAT-5). A node has one link for
//! each subgroup and each of its other members, and most steps change few subgroups.
//!
//! Requirement: BAT-5.

use super::state::Link;
use super::subgroup_set::SubgroupSet;

impl Link {
    /// Fills in the number of links to the same peer from each link on, in a sorted list.
    pub(crate) fn count_rest(links: &mut [Self]) {
        let mut rest = 0_usize;
        let mut peer = None;
        // bound: the links
        for link in links.iter_mut().rev() {
            rest = if peer == Some(link.peer) { rest.saturating_add(1) } else { 1 };
            (link.rest, peer) = (rest, Some(link.peer));
        }
    }

    /// Returns the index of the first link from `index` on that belongs to a subgroup of the set.
    /// `subgroups` is the number of the node's subgroups.
    ///
    /// A peer has at most one link for each subgroup from the set's next one on, so all others of
    /// its links are passed over at once. If the peer belongs to every subgroup, only links of the
    /// set are examined.
    #[inline(always)]
    pub(super) fn next_of(
        links: &[Self],
        index: usize,
        (set, subgroups): (SubgroupSet, usize),
    ) -> usize {
        let mut index = index;
        // bound: the links
        while let Some(link) = links.get(index) {
            let next = set.next(link.subgroup);
            if next == link.subgroup {
                break;
            }
            let later = subgroups.saturating_sub(next);
            index = index.saturating_add(link.rest.saturating_sub(later).max(1));
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Rank;
    use proptest::prelude::*;

    proptest! {
        /// Peers belong to some of the node's subgroups each.
        #[test]
        fn every_link_of_the_set_is_found(
            peers in prop::collection::vec(prop::collection::vec(any::<bool>(), 70), 0..5),
            (subgroups, bits) in (1_usize..70, prop_oneof![Just(0), Just(1 << 20), any::<u64>()]),
        ) {
            let set = SubgroupSet::from_bits(bits);
            let mut links: Vec<Link> = Vec::new();
            for (peer, belongs) in (0..).map(Rank).zip(&peers) {
                let all = (0..subgroups).zip(belongs).filter(|(_, belongs)| **belongs);
                links.extend(all.map(|(subgroup, _)| Link { peer, subgroup, ..Link::VACANT }));
            }
            Link::count_rest(&mut links);
            let is_in = |link: &Link| bits >> (link.subgroup % 64) & 1 == 1;
            let expected: Vec<usize> = (0..).zip(&links).filter(|(_, link)| is_in(link))
                .map(|(index, _)| index).collect();
            let mut found = Vec::new();
            let mut index = Link::next_of(&links, 0, (set, subgroups));
            while index < links.len() {
                found.push(index);
                index = Link::next_of(&links, index.saturating_add(1), (set, subgroups));
            }
            prop_assert_eq!(found, expected);
        }
    }
}
