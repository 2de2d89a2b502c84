//! The order of a transfer's members if the nodes are in racks (RDMC 4.3, "Hybrid Algorithms").
//!
//! The schedule divides the members into racks of equal size, or with one more in the first. The
//! members' real racks may differ from that, because nodes fail. Then some members count as part of
//! a neighboring rack; more blocks cross between racks, and everything else stays the same.

use std::num::NonZeroU16;

use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::rdmc::Algorithm;

use crate::group::description::terms::Description;

impl Description {
    /// Returns the number of racks, or `None` if the nodes are not in several racks.
    #[must_use]
    pub fn racks(&self) -> Option<NonZeroU16> {
        let racks = count(self.nodes.iter().map(|node| node.rack.as_deref()))?;
        (racks.get() > 1).then_some(racks)
    }

    /// Returns the algorithm to use instead of `usual`: the hybrid instead of a pipeline if the
    /// nodes are in several racks.
    #[must_use]
    pub fn over_racks(&self, usual: Algorithm) -> Algorithm {
        match (usual, self.racks()) {
            (Algorithm::Pipeline, Some(racks)) => Algorithm::Hybrid { racks },
            _ => usual,
        }
    }

    fn rack_of(&self, node: NodeId) -> Option<&str> {
        self.nodes.iter().find(|known| known.id == node.get())?.rack.as_deref()
    }

    /// Returns the members of a transfer, `root` first, and its algorithm. If the algorithm is the
    /// hybrid, the members of a rack are adjacent, beginning with those in the root's rack.
    pub(super) fn in_racks(
        &self,
        algorithm: Algorithm,
        view: &[NodeId],
        root: Rank,
        members: &[Rank],
    ) -> (Vec<Rank>, Algorithm) {
        let rack_of = |rank: &Rank| view.get(rank.index()).and_then(|node| self.rack_of(*node));
        let others = members.iter().filter(|rank| **rank != root).copied();
        let ordered: Vec<Rank> = std::iter::once(root).chain(others).collect();
        let racks = count(members.iter().map(rack_of));
        let (Algorithm::Hybrid { .. }, Some(racks)) = (algorithm, racks) else {
            return (ordered, algorithm);
        };
        let mut real: Vec<Vec<Rank>> = Vec::new();
        for rank in ordered {
            let of_rack = |rack: &&mut Vec<Rank>| rack.first().map(rack_of) == Some(rack_of(&rank));
            match real.iter_mut().find(of_rack) {
                Some(rack) => rack.push(rank),
                None => real.push(vec![rank]),
            }
        }
        // The schedule's longer racks come first, so the longer ones follow the root's.
        real[1..].sort_by_key(|rack| std::cmp::Reverse(rack.len()));
        (as_scheduled(real, members.len()), Algorithm::Hybrid { racks })
    }
}

/// Returns the members in the order of their racks, each filled up to the size that the schedule
/// assumes with members of racks that have more.
fn as_scheduled(mut racks: Vec<Vec<Rank>>, members: usize) -> Vec<Rank> {
    let (each, longer) = (members / racks.len(), members % racks.len());
    let size = |rack: usize| each + usize::from(rack < longer);
    let beyond =
        |(rack, ranks): (usize, &mut Vec<Rank>)| ranks.split_off(size(rack).min(ranks.len()));
    let mut spare: Vec<Rank> = racks.iter_mut().enumerate().flat_map(beyond).collect();
    for (rack, ranks) in racks.iter_mut().enumerate() {
        let missing = size(rack) - ranks.len();
        ranks.extend(spare.drain(spare.len().saturating_sub(missing)..));
    }
    racks.concat()
}

/// Returns the number of different racks, or `None` if one is not known.
fn count<'r>(racks: impl Iterator<Item = Option<&'r str>>) -> Option<NonZeroU16> {
    let mut racks: Vec<&str> = racks.collect::<Option<_>>()?;
    racks.sort_unstable();
    racks.dedup();
    NonZeroU16::new(u16::try_from(racks.len()).ok()?)
}

#[cfg(test)]
mod tests {
    use tramontane_core::ids::Step;
    use tramontane_core::rdmc::{Schedule, Shape};

    use super::*;

    const BLOCKS: u32 = 40;

    /// Returns the number of blocks that cross between racks.
    fn crossing(description: &Description, (order, algorithm): &(Vec<Rank>, Algorithm)) -> usize {
        let shape = Shape::new(u16::try_from(order.len()).expect("few"), BLOCKS).expect("valid");
        let schedule = Schedule::new(*algorithm, shape).expect("no rack is empty");
        let rack = |rank: Rank| description.rack_of(NodeId(order[rank.index()].0.into()));
        let ranks = || (0_u16..).map(Rank).take(order.len());
        let sent =
            (0..schedule.steps()).flat_map(|step| ranks().map(move |rank| (rank, Step(step))));
        let hops = sent.flat_map(|(rank, step)| {
            schedule.sent(rank, step).into_iter().flatten().map(move |hop| (rank, hop.peer))
        });
        hops.filter(|(from, to)| rack(*from) != rack(*to)).count()
    }

    /// The racks' nodes alternate in the group file. Some nodes fail.
    #[test]
    fn few_blocks_cross_between_racks() {
        let mut description = Description::local("racks", 16, 8, 16);
        assert_eq!(description.racks(), None);
        for node in &mut description.nodes {
            node.rack = Some(format!("rack-{}", node.id % 4));
        }
        assert_eq!(description.racks(), NonZeroU16::new(4));
        let view: Vec<NodeId> = (0..16).map(NodeId).collect();
        let hybrid = Algorithm::Hybrid { racks: NonZeroU16::MIN };
        let blocks = BLOCKS as usize;
        // The leaders of the other racks each receive every block. A member that counts as part of
        // another rack receives and sends blocks across.
        for (gone, most) in [(&[][..], 3), (&[1], 5), (&[1, 5, 9], 6), (&[1, 5, 9, 13], 2)] {
            let is_there = |rank: &Rank| !gone.contains(&rank.0);
            let members: Vec<Rank> = (0..16).map(Rank).filter(is_there).collect();
            for root in &members {
                let placed = description.in_racks(hybrid, &view, *root, &members);
                let crossed = crossing(&description, &placed);
                let pipeline = (placed.0, Algorithm::Pipeline);
                let otherwise = crossing(&description, &pipeline);
                assert_eq!(pipeline.0[0], *root);
                assert!(crossed <= most * blocks && crossed < otherwise);
            }
        }
        // Members of one rack, and members without racks.
        let one: Vec<Rank> = [0, 4, 8].map(Rank).into();
        let placed = description.in_racks(hybrid, &view, Rank(4), &one);
        assert_eq!(placed.0, [4, 0, 8].map(Rank));
        assert_eq!(crossing(&description, &placed), 0);
        let none = Description::local("none", 3, 8, 16);
        let placed = none.in_racks(Algorithm::Chain, &view, Rank(1), &[0, 1, 2].map(Rank));
        assert_eq!(placed, (vec![Rank(1), Rank(0), Rank(2)], Algorithm::Chain));
    }
}
