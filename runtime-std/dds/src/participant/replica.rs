//! The participant as an application of its group.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use tramontane::{Messages, NodeId, Replica, SubgroupId, ViewChanged};

use super::shared::{Shared, upcall};
use crate::domain::Domain;
use crate::error::DdsError;
use crate::time::Now;
use crate::waitset::lock;

/// Hands messages to their topics.
pub(super) struct TopicReplica {
    shared: Arc<Shared>,
    /// It has been told of a view. The first one's members have not joined in it: it is what this
    /// participant finds.
    is_member: bool,
}

impl TopicReplica {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), is_member: false }
    }
}

impl Replica for TopicReplica {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let shared = &self.shared;
        let Some(topic) = Domain::topic_index(messages.subgroup()) else {
            upcall(|| {
                let mut discovery = lock(&shared.discovery);
                messages.for_each(|message| discovery.heard(message.sender.get(), message.payload));
            });
            return;
        };
        let timing_changed = shared.with_topic(topic, |state| {
            let now = Now::read();
            for message in messages {
                state.deliver(&message, now);
            }
            state.flush();
            state.take_timing_changed()
        });
        if timing_changed == Some(true) {
            shared.alarm.ring();
        }
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        let joined = if self.is_member { change.joined } else { &[change.own] };
        self.is_member = true;
        let is_gone = |participant: u32| {
            let is = |node: &NodeId| node.get() == participant;
            // Who has just joined has no writers yet: what is known is of its former process.
            !change.view.members.iter().any(is) || joined.iter().any(is)
        };
        let now = Now::read();
        for topic in 0..self.shared.topics.len() {
            self.shared.with_topic(topic, |state| state.view_changed(is_gone, now));
        }
        upcall(|| lock(&self.shared.discovery).view_changed(is_gone));
    }

    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        let taken = match Domain::topic_index(subgroup) {
            None => lock(&self.shared.discovery).snapshot(),
            Some(topic) => self
                .shared
                .with_topic(topic, |state| state.snapshot())
                .unwrap_or_else(|| Err(DdsError::Domain("no such topic".into()))),
        };
        match taken {
            Ok(bytes) => Box::new(Cursor::new(bytes)),
            Err(error) => Box::new(Failed(error.to_string())),
        }
    }

    fn restore(&mut self, subgroup: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        let restored = match Domain::topic_index(subgroup) {
            None => upcall(|| lock(&self.shared.discovery).restore(&bytes)),
            Some(topic) => self
                .shared
                .with_topic(topic, |state| state.restore(&bytes, Now::read()))
                .unwrap_or(Ok(())),
        };
        restored.map_err(io::Error::other)
    }
}

/// A state that cannot be read, so that the joiner looks for another supplier.
struct Failed(String);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other(self.0.clone()))
    }
}
