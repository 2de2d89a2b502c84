//! What a group is made of, as the host's configuration files and command lines say it.

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::{Delivery, Group, Layout, LayoutError, Subgroup};

use crate::group::{Description, DescriptionBuilder, SubgroupDescription};
pub use crate::group::{MESSAGE_MAX_DEFAULT, WINDOW_DEFAULT};

/// A group of nodes and its subgroups. All members must be given the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupConfiguration {
    /// Node ids, in rank order.
    pub members: Vec<u32>,
    /// The subgroups.
    pub subgroups: Vec<SubgroupConfiguration>,
}

/// A subgroup: who belongs to it, who sends, and how large its rings are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubgroupConfiguration {
    /// Ranks of the members.
    pub members: Vec<u16>,
    /// Ranks of the senders, in sender order.
    pub senders: Vec<u16>,
    /// Slots a sender has.
    #[serde(default = "window_default")]
    pub window: u32,
    /// The largest message, in bytes.
    #[serde(default = "message_max_default")]
    pub message_max: u32,
    /// Hand over on receipt, without one order and without waiting for stability.
    #[serde(default)]
    pub unordered: bool,
}

fn window_default() -> u32 {
    WINDOW_DEFAULT
}

fn message_max_default() -> u32 {
    MESSAGE_MAX_DEFAULT
}

impl GroupConfiguration {
    /// Nodes `0` to `nodes - 1` in one ordered subgroup, of which the first `senders` send.
    #[must_use]
    pub fn single(nodes: u16, senders: u16, window: u32, message_max: u32) -> Self {
        Self {
            members: (0..u32::from(nodes)).collect(),
            subgroups: vec![SubgroupConfiguration {
                members: (0..nodes).collect(),
                senders: (0..senders).collect(),
                window,
                message_max,
                unordered: false,
            }],
        }
    }

    /// Builds the description of this group under a name.
    #[must_use]
    pub fn describe(&self, name: &str) -> DescriptionBuilder {
        let nodes = |ranks: &[u16]| {
            let node = |rank: &u16| self.members.get(usize::from(*rank)).copied();
            Some(ranks.iter().filter_map(node).collect())
        };
        let builder = Description::builder(name).node_ids(self.members.iter().copied());
        (0..).zip(&self.subgroups).fold(builder, |builder, (index, subgroup)| {
            builder.subgroup(SubgroupDescription {
                members: nodes(&subgroup.members),
                senders: nodes(&subgroup.senders),
                window: subgroup.window,
                message_max: subgroup.message_max,
                unordered: subgroup.unordered,
                ..SubgroupDescription::named(&format!("{name}-{index}"))
            })
        })
    }

    /// Calls `body` with the layout of this group.
    ///
    /// # Errors
    /// What is wrong with the group.
    pub fn with_layout<R>(&self, body: impl FnOnce(&Layout<'_>) -> R) -> Result<R, LayoutError> {
        let ids: Vec<NodeId> = self.members.iter().copied().map(NodeId).collect();
        let ranks = |ranks: &[u16]| ranks.iter().copied().map(Rank).collect::<Vec<_>>();
        let owned: Vec<(Vec<Rank>, Vec<Rank>)> = self
            .subgroups
            .iter()
            .map(|group| (ranks(&group.members), ranks(&group.senders)))
            .collect();
        let subgroups: Vec<Subgroup<'_>> = self
            .subgroups
            .iter()
            .zip(&owned)
            .map(|(group, (members, senders))| Subgroup {
                members,
                senders,
                window: group.window,
                message_max: group.message_max,
                delivery: if group.unordered { Delivery::Unordered } else { Delivery::Ordered },
            })
            .collect();
        let layout = Layout::new(Group { members: &ids, subgroups: &subgroups })?;
        Ok(body(&layout))
    }

    /// The rank of a node id.
    #[must_use]
    pub fn rank_of(&self, node: u32) -> Option<Rank> {
        let index = self.members.iter().position(|member| *member == node)?;
        u16::try_from(index).ok().map(Rank)
    }

    /// The node id of a rank.
    #[must_use]
    pub fn node_at(&self, rank: Rank) -> Option<NodeId> {
        self.members.get(rank.index()).copied().map(NodeId)
    }
}
