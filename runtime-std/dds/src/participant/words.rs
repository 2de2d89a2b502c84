//! Handling of received discovery messages: a member receives them from its group, an external
//! participant from a member. Both know the same topics at the same position in the order.

use std::time::{Duration, Instant};

use tramontane::Message;

use super::directory::{Created, HeldPlace};
use super::handles::ParticipantId;
use super::shared::ParticipantState;
use super::upcall::upcall;
use crate::domain::TopicDescription;
use crate::error::DdsError;
use crate::sync::lock;
use crate::time::Now;
use crate::wire::Word;

/// Time for which, on an external participant, a topic waits for the remaining messages of the
/// previous topic in its place.
const REST_WAIT: Duration = Duration::from_secs(2);

/// Interval between checks for the remaining messages.
const LOOK: Duration = Duration::from_millis(1);

impl ParticipantState {
    /// Handles a participant's message.
    pub(super) fn hear(&self, message: &Message<'_>) {
        let participant = ParticipantId::of(message);
        match Word::decode(message.payload) {
            Ok(Word::Reader(said)) => {
                upcall(|| lock(&self.discovery).heard(participant, said));
                return;
            }
            Ok(_) if message.client.is_some() => {
                tracing::warn!(%participant, "an external participant sent a message that only \
                     members may send");
                return;
            }
            Ok(Word::Create { request, topic }) => self.hear_create(message, request, topic),
            Ok(Word::Delete { request, name }) => self.hear_delete(message, request, &name),
            Ok(Word::Free { generation }) => self.hear_free(generation),
            Err(error) => tracing::warn!(%participant, %error, "an announcement is invalid"),
        }
        self.known.tell();
        self.alarm.ring();
    }

    fn hear_create(&self, message: &Message<'_>, request: u64, topic: TopicDescription) {
        let (creator, created_in) = (message.sender.get(), message.view.get());
        let created = self.known.lock().directory.create(creator, created_in, topic);
        if let Ok(Created { index, is_new: true, .. }) = created {
            let held = self.known.lock().held_topics().remove(&index);
            // Participants cannot find the topic before it opens, which happens later.
            held.into_iter().for_each(|held| self.begin_topic(index, &held));
        }
        if self.is_own_request(message) {
            self.known.lock().answer(request, created);
        }
    }

    fn hear_delete(&self, message: &Message<'_>, request: u64, name: &str) {
        let deleted = self.known.lock().directory.delete(name);
        // The directory is changed before the writers are stopped, because a thread that creates a
        // writer checks the directory after the writer is registered in discovery.
        if let Ok((index, generation)) = deleted {
            upcall(|| lock(&self.discovery).stop_writers(index, generation));
        }
        if self.is_own_request(message) {
            let gone = |(index, generation)| Created { index, generation, is_new: false };
            self.known.lock().answer(request, deleted.map(gone));
        }
    }

    fn hear_free(&self, generation: u64) {
        let mut known = self.known.lock();
        let place = known.directory.held().find(|(_, held)| held.generation == generation);
        let place = place.map(|(place, _)| place);
        let was_held = known.directory.free(generation);
        if self.is_outside()
            && let Some(place) = place.filter(|_| was_held)
        {
            known.set_open(place, false);
        }
        drop(known);
        if was_held {
            upcall(|| lock(&self.discovery).topic_gone(generation));
        }
    }

    /// Returns whether this process made the request, rather than a previous process of this node
    /// whose requests are being replayed.
    fn is_own_request(&self, message: &Message<'_>) -> bool {
        ParticipantId::of(message) == self.own && !message.is_replayed
    }

    pub(super) const fn is_outside(&self) -> bool {
        matches!(self.own, ParticipantId::Client(_))
    }

    /// Begins a topic at its place.
    pub(super) fn begin_topic(&self, index: usize, held: &HeldPlace) {
        self.await_rest(index);
        let HeldPlace { topic, generation, created_in, .. } = held;
        // A member has received all messages of the previous topic. Its listeners are dropped
        // without holding the lock.
        drop(self.with_topic(index, |state| {
            let readers = state.end(Now::read());
            state.begin(*generation, *created_in, topic.store());
            readers
        }));
        if self.is_outside() {
            let mut known = self.known.lock();
            if let Some(place) = known.directory.place_of(index) {
                known.set_open(place, true);
            }
        }
    }

    /// Waits briefly for the remaining messages of the topic that previously had this index. An
    /// external participant receives a topic's messages and discovery over different connections,
    /// so these messages may arrive late.
    fn await_rest(&self, index: usize) {
        let until = Instant::now() + REST_WAIT;
        let is_followed = || lock(&self.followed).iter().any(|(topic, _)| *topic == index);
        while is_followed() && Instant::now() < until && !self.life.has_ended() {
            std::thread::sleep(LOOK);
        }
    }

    /// Restores a member's state of readers and topics, on an external participant.
    pub(super) fn take_over_discovery(&self, bytes: &[u8]) -> Result<(), DdsError> {
        let state = upcall(|| lock(&self.discovery).take_over(bytes))?;
        let mut known = self.known.lock();
        let before = known.held_topics();
        if !known.directory.restore(state) {
            return Err(DdsError::Domain("a member has different places for topics".into()));
        }
        let after = known.held_topics();
        let is_another = |index: &usize, held: &HeldPlace| {
            before.get(index).is_none_or(|before| before.generation != held.generation)
        };
        for place in 0..known.directory.places() {
            let index = known.directory.index_of(place);
            if after.get(&index).is_none_or(|held| is_another(&index, held)) {
                known.set_open(place, false);
            }
        }
        drop(known);
        for (index, held) in &before {
            let is_written = |now: &HeldPlace| now.generation == held.generation && !now.ends;
            if !after.get(index).is_some_and(is_written) {
                upcall(|| lock(&self.discovery).stop_writers(*index, held.generation));
            }
        }
        for (index, held) in after.iter().filter(|(index, held)| is_another(index, held)) {
            self.begin_topic(*index, held);
        }
        self.known.tell();
        Ok(())
    }
}
