//! Large messages at a node. Their bytes travel by block multicast, outside the node's steps; the
//! caller reports how many are complete (RDM-7).

use super::Node;
use crate::ids::{SenderRank, SubgroupId};

impl Node<'_> {
    /// Reports how many of a sender's large messages have arrived completely in this view: the
    /// blocks of the first `count` messages (RDM-7). The next step receives them.
    pub fn large_arrived(&mut self, subgroup: SubgroupId, sender: SenderRank, count: u64) {
        let state = self.subgroups.iter().find(|state| state.id == subgroup);
        let senders = state.and_then(|state| state.senders.of_mut(self.senders));
        if let Some(sender) = senders.and_then(|senders| senders.get_mut(sender.index())) {
            sender.large_here = sender.large_here.max(count);
        }
    }

    /// Returns how many of a sender's large messages were delivered here in this view. Their bytes
    /// are no longer needed, unless the sender is this node. Zero if this node does not belong to
    /// the subgroup.
    #[must_use]
    pub fn large_delivered(&self, subgroup: SubgroupId, sender: SenderRank) -> u64 {
        let state = self.subgroups.iter().find(|state| state.id == subgroup);
        let senders = state.and_then(|state| state.senders.of(self.senders));
        senders
            .and_then(|senders| senders.get(sender.index()))
            .map_or(0, |sender| sender.large_handed)
    }
}
