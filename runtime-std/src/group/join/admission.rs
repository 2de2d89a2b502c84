//! The admission of a node: the view that admits it, the end of the previous view, and the messages
//! of the previous view that the node was sent (VIE-10).

use serde::{Deserialize, Serialize};
use tramontane_core::ids::SubgroupId;

use crate::group::description::subgroups::subgroups;
use crate::group::description::terms::Description;
use crate::group::description::view::View;
use crate::group::engine::open_view::OpenView;

/// The end of a view in a subgroup that continues, that is, one of its members is in the next view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SubgroupEnd {
    pub(crate) subgroup: u16,
    /// The sequence position after the last delivered message; `None` in an unordered subgroup.
    pub(crate) trim: Option<u64>,
}

/// The number of messages that a member sent to a joining node after the state of a subgroup, and
/// the position after the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentCount {
    pub(crate) subgroup: u16,
    pub(crate) messages: u64,
    /// The view and the sequence position after the last of these messages.
    pub(crate) view: u64,
    pub(crate) place: u64,
}

/// A view, and the ends of the previous view in its subgroups: everything that nodes admitted by
/// the view must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) view: View,
    pub(crate) ends: Vec<SubgroupEnd>,
}

impl Admission {
    /// Creates the admission of a group's first view, which admits no node.
    pub(crate) const fn first(view: View) -> Self {
        Self { view, ends: Vec::new() }
    }

    /// Creates the admission of the view after `ended`.
    pub(crate) fn after(ended: &mut OpenView, next: View, description: &Description) -> Self {
        let mut ends = Vec::new();
        for subgroup in subgroups(description) {
            let before = ended.view().subgroup_members(description, subgroup);
            if before.iter().any(|node| next.members.contains(node)) {
                let is_ordered =
                    description.subgroups.get(subgroup.index()).is_some_and(|of| !of.unordered);
                let trim = ended
                    .read(|node| node.trim(subgroup))
                    .map(|trim| trim.0)
                    .filter(|_| is_ordered);
                ends.push(SubgroupEnd { subgroup: subgroup.0, trim });
            }
        }
        Self { view: next, ends }
    }

    /// Returns where the previous view ended in a subgroup, if the subgroup continues.
    pub(crate) fn end_of(&self, subgroup: SubgroupId) -> Option<&SubgroupEnd> {
        self.ends.iter().find(|end| end.subgroup == subgroup.0)
    }

    /// Returns whether `sent` covers everything that was delivered in its subgroup before the view.
    pub(crate) fn is_whole(&self, sent: &SentCount) -> bool {
        let Some(end) = self.end_of(SubgroupId(sent.subgroup)) else { return false };
        // A state of this view, taken before anything had been delivered in it.
        let is_of_now = sent.view == self.view.id.0 && sent.place == 0 && sent.messages == 0;
        let is_of_before = sent.view.checked_add(1) == Some(self.view.id.0);
        is_of_now || (is_of_before && end.trim.is_none_or(|trim| trim == sent.place))
    }
}

#[cfg(test)]
mod tests {
    use tramontane_core::ids::NodeId;

    use super::*;
    use crate::group::description::subgroups::needed;
    use crate::group::description::view::FIRST_VIEW;

    #[test]
    fn supplied_state_is_complete_at_end_of_view() {
        let first = View::with_all_senders(FIRST_VIEW, vec![NodeId(0)], Vec::new());
        let view = View { id: FIRST_VIEW.next(), members: vec![NodeId(0), NodeId(1)], ..first };
        let ends = vec![
            SubgroupEnd { subgroup: 0, trim: Some(9) },
            SubgroupEnd { subgroup: 2, trim: None },
        ];
        let admission = Admission { view, ends };
        let is_whole = |subgroup, messages, view, place| {
            admission.is_whole(&SentCount { subgroup, messages, view, place })
        };
        assert!(is_whole(0, 4, 1, 9) && is_whole(0, 0, 2, 0) && is_whole(2, 4, 1, 5));
        assert!(!is_whole(0, 4, 1, 8), "a place is missing");
        assert!(!is_whole(0, 4, 1, 10), "more than was delivered");
        assert!(!is_whole(0, 1, 2, 1), "something was delivered in this view");
        assert!(!is_whole(0, 4, 3, 9), "another view");
        assert!(!is_whole(1, 0, 1, 0), "nobody has that subgroup");
    }

    #[test]
    fn joiner_needs_subgroup_state_if_another_has_it() {
        let mut description = Description::local("needed", 4, 8, 16);
        let mut two = description.subgroups[0].clone();
        (two.members, two.senders) = (Some(vec![2, 3]), Some(vec![2, 3]));
        description.subgroups.push(two);
        let view = |members: &[u32]| {
            let members = members.iter().copied().map(NodeId).collect();
            View::with_all_senders(FIRST_VIEW, members, Vec::new())
        };
        let of_three = |members| needed(&description, &view(members), NodeId(3));
        assert_eq!(of_three(&[0, 1]), [SubgroupId(0)]);
        assert_eq!(of_three(&[0, 1, 2]), [SubgroupId(0), SubgroupId(1)]);
        assert_eq!(of_three(&[0, 1, 3]), [SubgroupId(0)], "itself it cannot ask");
        assert_eq!(
            needed(&description, &view(&[2, 3]), NodeId(1)),
            [SubgroupId(0)],
            "not of its own"
        );
    }
}
