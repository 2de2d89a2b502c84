//! Large messages at a node. Their bytes travel by block multicast, outside the node's steps; the
//! caller reports the number of complete messages (RDM-7).

use super::Node;
use crate::ids::{SenderRank, SubgroupId};

impl Node<'_> {
    /// Reports the number of a sender's large messages that have arrived completely in this view:
    /// all blocks of the first `count` messages (RDM-7). The next step receives these messages.
    pub fn large_arrived(&mut self, subgroup: SubgroupId, sender: SenderRank, count: u64) {
        let state = self.subgroups.iter_mut().find(|state| state.id == subgroup);
        let Some(state) = state else { return };
        state.is_at_rest = false;
        let senders = state.senders.of_mut(self.senders).unwrap_or_default();
        if let Some(sender) = senders.get_mut(sender.index()) {
            sender.large_here = sender.large_here.max(count);
        }
    }

    /// Returns the number of a sender's large messages that have been delivered here in this view.
    /// Their bytes are no longer needed, unless this node is the sender. Returns zero if this node
    /// does not belong to the subgroup.
    #[must_use]
    pub fn large_delivered(&self, subgroup: SubgroupId, sender: SenderRank) -> u64 {
        let state = self.subgroups.iter().find(|state| state.id == subgroup);
        let senders = state.and_then(|state| state.senders.of(self.senders));
        senders
            .and_then(|senders| senders.get(sender.index()))
            .map_or(0, |sender| sender.large_handed)
    }
}
