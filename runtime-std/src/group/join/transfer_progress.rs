//! The record of what a joining node has restored in its subgroups, and whether that is everything
//! that the admitting view requires (VIE-10).

use std::collections::BTreeMap;

use tramontane_core::ids::{NodeId, SubgroupId};

use super::admission::{Admission, SentCount};
use crate::group::description::subgroups::needed;
use crate::group::description::terms::Description;

/// The progress of one subgroup.
#[derive(Debug, Default)]
struct SubgroupProgress {
    /// The number of messages received after the state.
    messages: u64,
    /// The supplier's report of what it has sent, which it makes once it has sent everything.
    sent: Option<SentCount>,
    /// Whether the join in which the subgroup was restored has been interrupted.
    is_over: bool,
}

/// Everything that a joining node has restored, in this attempt and in earlier ones.
#[derive(Debug, Default)]
pub(crate) struct TransferProgress(BTreeMap<u16, SubgroupProgress>);

impl TransferProgress {
    /// Begins a join. Data restored earlier no longer counts.
    pub(crate) fn begin(&mut self) {
        self.0.values_mut().for_each(|part| {
            *part = SubgroupProgress { is_over: true, ..SubgroupProgress::default() }
        });
    }

    /// Records that the state of a subgroup has arrived, replacing any earlier one.
    pub(crate) fn state(&mut self, subgroup: SubgroupId) {
        self.0.insert(subgroup.0, SubgroupProgress::default());
    }

    /// Returns the subgroups whose state has arrived.
    pub(crate) fn subgroups(&self) -> impl Iterator<Item = SubgroupId> {
        self.0.keys().copied().map(SubgroupId)
    }

    /// Records that a message has arrived. Returns false if the state of its subgroup has not.
    #[must_use]
    pub(crate) fn message(&mut self, subgroup: u16) -> bool {
        let part = self.0.get_mut(&subgroup).filter(|part| !part.is_over && part.sent.is_none());
        part.map(|part| part.messages += 1).is_some()
    }

    /// Records a supplier's report that it has sent everything.
    pub(crate) fn sent(&mut self, sent: &[SentCount]) {
        for sent in sent {
            if let Some(part) = self.0.get_mut(&sent.subgroup).filter(|part| !part.is_over) {
                part.sent = Some(*sent);
            }
        }
    }

    /// Returns the subgroups of a node that continue in the view that admits it, but that this node
    /// has not completely restored.
    pub(crate) fn lacking(
        &self,
        description: &Description,
        own: NodeId,
        admission: &Admission,
    ) -> Vec<SubgroupId> {
        let is_whole = |subgroup: &SubgroupId| {
            let part = self.0.get(&subgroup.0);
            part.is_some_and(|part| {
                part.sent
                    .is_some_and(|sent| sent.messages == part.messages && admission.is_whole(&sent))
            })
        };
        let mut lacking = needed(description, &admission.view, own);
        lacking.retain(|subgroup| admission.end_of(*subgroup).is_some() && !is_whole(subgroup));
        lacking
    }

    /// Returns the subgroups that start empty in the view that admits this node, although some of
    /// their data was restored before.
    pub(crate) fn outdated(&self, admission: &Admission) -> impl Iterator<Item = SubgroupId> {
        let subgroups = self.0.keys().copied().map(SubgroupId);
        subgroups.filter(|subgroup| {
            admission.end_of(*subgroup).is_none() && !admission.view.is_closed(*subgroup)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::description::view::{FIRST_VIEW, View};
    use crate::group::join::admission::SubgroupEnd;

    const OWN: NodeId = NodeId(2);
    const SUBGROUP: SubgroupId = SubgroupId(0);

    fn admission(members: &[u32], ends: Vec<SubgroupEnd>) -> Admission {
        let members = members.iter().copied().map(NodeId).collect();
        Admission { view: View::with_all_senders(FIRST_VIEW.next(), members, Vec::new()), ends }
    }

    fn sent(messages: u64, place: u64) -> [SentCount; 1] {
        [SentCount { subgroup: 0, messages, view: FIRST_VIEW.0, place }]
    }

    #[test]
    fn state_is_complete_at_end_of_previous_view() {
        let description = Description::local("transfer", 3, 8, 16);
        let admission = admission(&[0, 1, 2], vec![SubgroupEnd { subgroup: 0, trim: Some(7) }]);
        let lacks = |progress: &TransferProgress| {
            !progress.lacking(&description, OWN, &admission).is_empty()
        };
        let mut progress = TransferProgress::default();
        assert!(lacks(&progress), "no state");
        assert!(!progress.message(0), "no state that it belongs to");
        progress.state(SUBGROUP);
        assert!(lacks(&progress), "nobody said that this is all");
        assert!(progress.message(0) && progress.message(0));
        progress.sent(&sent(3, 7));
        assert!(lacks(&progress), "a message is missing");
        progress.state(SUBGROUP);
        progress.sent(&sent(0, 6));
        assert!(lacks(&progress), "the end of the view is missing");
        progress.state(SUBGROUP);
        assert!(progress.message(0) && progress.message(0));
        progress.sent(&sent(2, 7));
        assert!(!lacks(&progress));
        progress.begin();
        assert!(lacks(&progress) && !progress.message(0), "another join");
    }

    #[test]
    fn new_subgroup_needs_and_accepts_no_state() {
        let description = Description::local("transfer", 3, 8, 16);
        let admission = admission(&[1, 2], Vec::new());
        let mut progress = TransferProgress::default();
        assert!(progress.lacking(&description, OWN, &admission).is_empty());
        assert_eq!(progress.outdated(&admission).next(), None);
        progress.state(SUBGROUP);
        progress.begin();
        assert_eq!(progress.outdated(&admission).next(), Some(SUBGROUP));
        let mut closed = admission;
        closed.view.closed.push(SUBGROUP);
        assert_eq!(progress.outdated(&closed).next(), None);
    }
}
