//! The layout of a view, together with the configuration that it borrows.

use self_cell::self_cell;
use tramontane_core::ids::{NodeId, Rank, SubgroupId};
use tramontane_core::layout::{Delivery, Group, Layout, LayoutError, Subgroup};

use super::terms::{Description, Membership, SubgroupDescription};
use super::view::View;

/// The lists of a subgroup's configuration.
struct Lists {
    ids: Vec<NodeId>,
    subgroups: Vec<Ranks>,
    /// Ids of the subgroups with large messages.
    large: Vec<SubgroupId>,
    /// Ids of the logged subgroups.
    logged: Vec<SubgroupId>,
    /// Ids of the subgroups whose members pass on messages. The sender may be absent from a view.
    relayed: Vec<SubgroupId>,
}

struct Ranks {
    members: Vec<Rank>,
    senders: Vec<Rank>,
    window: u32,
    message_max: u32,
    delivery: Delivery,
}

impl Ranks {
    /// Lists the members and senders of a subgroup in a view. A layout cannot have empty subgroups,
    /// so a subgroup without members consists of the view's first member, which does not send in
    /// it. The subgroup then occupies no space other than its columns.
    fn of(subgroup: &SubgroupDescription, view: &View, id: SubgroupId) -> Self {
        let rank_of = |node| view.rank_of(node);
        let nodes = subgroup.members().iter().copied().map(NodeId);
        let members: Vec<Rank> = nodes.filter_map(rank_of).collect();
        if members.is_empty() || view.is_closed(id) {
            return Self {
                members: vec![Rank::default()],
                senders: Vec::new(),
                window: 1,
                message_max: 0,
                delivery: Delivery::Ordered,
            };
        }
        let delivery = if subgroup.unordered { Delivery::Unordered } else { Delivery::Ordered };
        Self {
            members,
            senders: view.senders_of(id, subgroup).filter_map(rank_of).collect(),
            window: subgroup.window,
            message_max: subgroup.slot_max(),
            delivery,
        }
    }

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

/// The layout of a view, together with everything from which it is computed.
pub struct ViewLayout(LayoutCell);

impl ViewLayout {
    /// Computes the layout of a view with these subgroups. The layout has columns for view changes
    /// only if membership can change.
    pub(crate) fn new(
        view: &View,
        subgroups: &[SubgroupDescription],
        membership: Membership,
    ) -> Result<Self, LayoutError> {
        let ids = (0..).map(SubgroupId);
        let large = ids.clone().zip(subgroups).filter(|(_, subgroup)| subgroup.large_max > 0);
        let logged = ids.clone().zip(subgroups).filter(|(_, subgroup)| subgroup.logged);
        let ranks: Vec<Ranks> = ids
            .clone()
            .zip(subgroups)
            .map(|(id, subgroup)| Ranks::of(subgroup, view, id))
            .collect();
        let relayed = ids.zip(subgroups).zip(&ranks);
        let relayed =
            relayed.filter(|((_, subgroup), ranks)| subgroup.relayed && ranks.senders.len() == 1);
        let lists = Lists {
            ids: view.members.clone(),
            large: large.map(|(id, _)| id).collect(),
            logged: logged.map(|(id, _)| id).collect(),
            relayed: relayed.map(|((id, _), _)| id).collect(),
            subgroups: ranks,
        };
        let subgroups =
            SubgroupsCell::new(lists, |lists| lists.subgroups.iter().map(Ranks::lend).collect());
        let layout = LayoutCell::try_new(subgroups, |subgroups| {
            let Lists { ids, large, logged, relayed, .. } = subgroups.borrow_owner();
            let group = Group { members: ids, subgroups: subgroups.borrow_dependent() };
            let layout = match membership {
                Membership::Fixed => Layout::new(group)?,
                Membership::Changing => {
                    Layout::with_views(group)?.with_large(large)?.with_logged(logged)?
                }
            };
            layout.with_relays(relayed)
        })?;
        Ok(Self(layout))
    }

    /// Returns the layout itself.
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

impl Description {
    /// Computes the layout of a view's memory, which is the same at every member.
    ///
    /// # Errors
    /// Returns the layout's error if the description is invalid.
    pub fn view_layout(&self, view: &View) -> Result<ViewLayout, LayoutError> {
        ViewLayout::new(view, &self.subgroups, self.membership)
    }
}
