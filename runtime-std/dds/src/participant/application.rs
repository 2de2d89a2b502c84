//! The participant as an application of its group.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use tramontane::{Application, ClientId, Messages, NodeId, SubgroupId, ViewChanged};

use super::handles::ParticipantId;
use super::shared::Shared;
use super::upcall::upcall;
use crate::domain::Domain;
use crate::error::DdsError;
use crate::sync::lock;
use crate::time::Now;

/// The application that passes messages to their topics.
pub(super) struct TopicApplication {
    shared: Arc<Shared>,
    /// Whether the application has seen a view. The members of the first view that it sees did not
    /// join in that view: they were members before this participant.
    is_member: bool,
}

impl TopicApplication {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), is_member: false }
    }
}

impl Application for TopicApplication {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let shared = &self.shared;
        let Some(topic) = Domain::topic_index(messages.subgroup()) else {
            messages.for_each(|message| shared.hear(&message));
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
        let is_gone = |participant: ParticipantId| {
            let ParticipantId::Node(participant) = participant else { return false };
            let is = |node: &NodeId| node.get() == participant;
            // A participant that has just joined has no writers yet. The known writers belong to
            // its previous process.
            !change.view.members.iter().any(is) || joined.iter().any(is)
        };
        for topic in 0..self.shared.topics.len() {
            self.shared.gone_in_topic(topic, is_gone);
        }
        self.shared.gone_in_discovery(is_gone);
        self.places_changed(change, Now::read());
    }

    fn client_forgotten(&mut self, subgroup: SubgroupId, client: ClientId) {
        let is_gone = |participant| participant == ParticipantId::Client(client);
        match Domain::topic_index(subgroup) {
            Some(topic) => self.shared.gone_in_topic(topic, is_gone),
            None => self.shared.gone_in_discovery(is_gone),
        }
    }

    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        let taken = match Domain::topic_index(subgroup) {
            None => {
                let directory = self.shared.known.lock().directory.state();
                lock(&self.shared.discovery).snapshot(directory, &self.shared.facts)
            }
            Some(topic) => self
                .shared
                .with_topic(topic, |state| state.snapshot())
                .unwrap_or_else(|| Err(DdsError::Domain("there is no such topic".into()))),
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
            None => self.restore_discovery(&bytes),
            Some(topic) => self
                .shared
                .with_topic(topic, |state| state.restore(&bytes, Now::read()))
                .unwrap_or(Ok(())),
        };
        restored.map_err(io::Error::other)
    }
}

impl TopicApplication {
    /// Handles a view in which places have been opened or closed.
    fn places_changed(&self, change: &ViewChanged<'_>, now: Now) {
        let is_keeper = change.view.members.first() == Some(&change.own);
        let mut known = self.shared.known.lock();
        let declared = known.directory.index_of(0);
        let is_open = |place| !change.view.is_closed(Domain::subgroup_of(declared + place));
        let closed = known.view_changed(is_keeper, is_open);
        drop(known);
        for place in closed {
            drop(self.shared.with_topic(declared + place, |state| state.end(now)));
        }
        self.shared.known.tell();
        self.shared.alarm.ring();
    }

    /// Restores another participant's state of readers and topics.
    fn restore_discovery(&self, bytes: &[u8]) -> Result<(), DdsError> {
        let state = upcall(|| lock(&self.shared.discovery).restore(bytes))?;
        let mut known = self.shared.known.lock();
        let state = state.unwrap_or_else(|| known.directory.first_state());
        if !known.directory.restore(state) {
            return Err(DdsError::Domain("another member has different places for topics".into()));
        }
        let held = known.held_topics();
        drop(known);
        held.into_iter().for_each(|(index, held)| self.shared.begin_topic(index, &held));
        Ok(())
    }
}

/// A state that cannot be read. The joiner then looks for another supplier.
struct Failed(String);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other(self.0.clone()))
    }
}
