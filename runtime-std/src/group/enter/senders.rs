//! The objects that a member's senders share with its engine from the beginning.

use std::sync::Arc;

use tramontane_core::ids::{NodeId, SubgroupId};

use crate::fabric::{AnyBell, AnyBlockStore};
use crate::group::description::terms::Description;
use crate::group::large::send_queue::{LargeSendQueue, LargeSendQueueReader};
use crate::group::send::send_state::SendState;
use crate::group::send::subgroup_sending::SubgroupSending;
use crate::poll::Ending;

/// The shared state of each subgroup in which this node sends, separately for senders, for the
/// engine, and for large messages.
pub(crate) struct Senders {
    pub(crate) send_states: Vec<Arc<SendState>>,
    pub(crate) sending: Vec<SubgroupSending>,
    pub(crate) large_queues: Vec<(SubgroupId, LargeSendQueueReader)>,
}

impl Senders {
    pub(crate) fn new(
        description: &Description,
        own: NodeId,
        store: &AnyBlockStore,
        ending: &Arc<Ending>,
        bell: &AnyBell,
    ) -> Self {
        let (mut send_states, mut sending, mut large_queues) = (Vec::new(), Vec::new(), Vec::new());
        let subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
        for (id, subgroup) in subgroups.filter(|(_, of)| of.senders().contains(&own.get())) {
            let large = description.large(id);
            let large = large
                .map(|large| LargeSendQueue::new(large.bytes_max, large.window, store.clone()));
            let (large, reader) = large.unzip();
            let state = SendState::new(id, subgroup, large, ending, bell);
            sending.push(SubgroupSending::new(Arc::clone(&state), subgroup));
            large_queues.extend(reader.map(|reader| (id, reader)));
            send_states.push(state);
        }
        Self { send_states, sending, large_queues }
    }
}
