//! The layout of a view, with the configuration that it borrows.

use self_cell::self_cell;
use tramontane_core::ids::{NodeId, Rank, SubgroupId};
use tramontane_core::layout::{Delivery, Group, Layout, LayoutError, Subgroup};

use crate::configuration::GroupConfiguration;

/// The lists that subgroups are made of.
struct Lists {
    ids: Vec<NodeId>,
    subgroups: Vec<Ranks>,
    /// Those with large messages.
    large: Vec<SubgroupId>,
}

struct Ranks {
    members: Vec<Rank>,
    senders: Vec<Rank>,
    window: u32,
    message_max: u32,
    delivery: Delivery,
}

impl Ranks {
    fn lend(&self) -> Subgroup<'_> {
        Subgroup {
            members: &self.members,
            senders: &self.senders,
            window: self.window,
            message_max: self.message_max,
            delivery: self.delivery,
        }
    }
}

type Subgroups<'l> = Vec<Subgroup<'l>>;

self_cell!(
    struct SubgroupsCell {
        owner: Lists,
        #[covariant]
        dependent: Subgroups,
    }
);

self_cell!(
    struct LayoutCell {
        owner: SubgroupsCell,
        #[covariant]
        dependent: Layout,
    }
);

/// A layout with columns for views, and everything that it is computed from.
pub struct ViewLayout(LayoutCell);

impl ViewLayout {
    pub(super) fn new(
        group: &GroupConfiguration,
        large: Vec<SubgroupId>,
    ) -> Result<Self, LayoutError> {
        let ranks = |ranks: &[u16]| ranks.iter().copied().map(Rank).collect();
        let subgroups = group.subgroups.iter().map(|subgroup| Ranks {
            members: ranks(&subgroup.members),
            senders: ranks(&subgroup.senders),
            window: subgroup.window,
            message_max: subgroup.message_max,
            delivery: if subgroup.unordered { Delivery::Unordered } else { Delivery::Ordered },
        });
        let lists = Lists {
            ids: group.members.iter().copied().map(NodeId).collect(),
            subgroups: subgroups.collect(),
            large,
        };
        let subgroups =
            SubgroupsCell::new(lists, |lists| lists.subgroups.iter().map(Ranks::lend).collect());
        let layout = LayoutCell::try_new(subgroups, |subgroups| {
            let Lists { ids, large, .. } = subgroups.borrow_owner();
            let group = Group { members: ids, subgroups: subgroups.borrow_dependent() };
            Layout::with_views(group)?.with_large(large)
        })?;
        Ok(Self(layout))
    }

    /// The layout itself.
    #[must_use]
    pub fn get(&self) -> &Layout<'_> {
        self.0.borrow_dependent()
    }
}

impl std::fmt::Debug for ViewLayout {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ViewLayout").field("digest", &self.get().digest()).finish_non_exhaustive()
    }
}
