//! The trees over which messages are ordered.
//!
//! The paper's figure 4 is missing from our copy of the text. The text's statements about its three
//! trees of eight groups determine their shapes: in the breadth tree, all groups but one are
//! children of the root; in the base and the depth tree, a message takes more hops. These are the
//! trees that `tramontane shards --example-config` prints. The base tree of the authors' published
//! code is another one.

use serde::Deserialize;
use tramontane_core::ids::GroupId;
use tramontane_core::tram::{Group, Limits, Overlay};

use crate::error::BenchError;

/// A tree of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tree {
    /// Eight groups, with two children each.
    Base,
    /// The base tree of the authors' published code: the root has one child, which has two.
    Authors,
    /// Eight groups: a root with seven children.
    Breadth,
    /// Eight groups, each the child of the previous one.
    Depth,
    /// A root with two children (8.5).
    Three,
}

impl Tree {
    /// Returns the parent of each group.
    const fn parents(self) -> &'static [Option<u16>] {
        match self {
            Self::Base => &[None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), Some(3)],
            Self::Authors => &[None, Some(0), Some(1), Some(1), Some(2), Some(2), Some(3), Some(3)],
            Self::Breadth => &[None, Some(0), Some(0), Some(0), Some(0), Some(0), Some(0), Some(0)],
            Self::Depth => &[None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)],
            Self::Three => &[None, Some(0), Some(0)],
        }
    }

    /// Returns the overlay, with `replicas` replicas in each group.
    ///
    /// # Errors
    /// Fails with [`BenchError::Arguments`] if there is no such overlay.
    pub(super) fn overlay(self, replicas: u16, limits: Limits) -> Result<Overlay, BenchError> {
        let group = |parent: &Option<u16>| Group { parent: parent.map(GroupId), replicas };
        let groups: Vec<Group> = self.parents().iter().map(group).collect();
        Overlay::new(&groups, limits).map_err(|error| BenchError::Arguments(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { clients: 1, log_entries: 4, client_window: 1, parent_window: 1, payload_max: 8 };

    #[test]
    fn deeper_tree_takes_more_levels() {
        let levels = |tree: Tree| {
            let overlay = tree.overlay(3, LIMITS).expect("a tree");
            let level = |group| {
                let above = std::iter::successors(Some(group), |group| overlay.parent(*group));
                above.count()
            };
            overlay.all().iter().map(level).max().expect("a group")
        };
        let of_eight = [Tree::Base, Tree::Authors, Tree::Breadth, Tree::Depth];
        let found = of_eight.map(levels);
        assert_eq!(found, [4, 4, 2, 8]);
        assert_eq!(levels(Tree::Three), 2);
        for tree in of_eight {
            assert_eq!(tree.parents().len(), 8, "{tree:?}");
        }
    }
}
