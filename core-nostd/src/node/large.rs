//! Large messages at a node. Their bytes go by block multicast, outside its steps; its caller says
//! how many are complete (RDM-7).

use super::Node;
use crate::ids::{SenderRank, SubgroupId};

impl Node<'_> {
    /// Says how many large messages of a sender are here in this view, whole: the blocks of so many
    /// were completed, in order (RDM-7). The next step takes their places.
    pub fn large_arrived(&mut self, subgroup: SubgroupId, sender: SenderRank, count: u64) {
        let state = self.subgroups.iter().find(|state| state.id == subgroup);
        let senders = state.and_then(|state| state.senders.of_mut(self.senders));
        if let Some(sender) = senders.and_then(|senders| senders.get_mut(sender.index())) {
            sender.large_here = sender.large_here.max(count);
        }
    }

    /// How many large messages of a sender were delivered here in this view: their bytes are not
    /// needed any more, unless the sender is this node. Zero if this node does not belong to the
    /// subgroup.
    #[must_use]
    pub fn large_delivered(&self, subgroup: SubgroupId, sender: SenderRank) -> u64 {
        let state = self.subgroups.iter().find(|state| state.id == subgroup);
        let senders = state.and_then(|state| state.senders.of(self.senders));
        senders
            .and_then(|senders| senders.get(sender.index()))
            .map_or(0, |sender| sender.large_handed)
    }
}
