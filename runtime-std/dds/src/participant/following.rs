//! The input of an external participant: as a client that learns everything that a member learns,
//! it follows discovery and each topic that it reads, each in a separate thread.
//!
//! # Invariants
//! - A topic's messages, views and client departures reach the topic's state in the same order as
//!   on members, so an external participant's readers receive the same samples as members' readers,
//!   in the same order.
//! - Once no member accepts the participant any longer, all writers and readers that it knows are
//!   considered gone.

use std::sync::Arc;
use std::time::Duration;

use tramontane::{Message, NodeId, Place, SubgroupId, ViewId};
use tramontane_client::{Event, Received, SubscribeError, Subscriber};

use super::handles::ParticipantId;
use super::shared::ParticipantState;
use crate::domain::Domain;
use crate::error::DdsError;
use crate::sync::lock;
use crate::time::Now;
use crate::topic::TopicState;

/// Interval between checks whether the participant has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Maximum number of events processed together.
const TOGETHER_MAX: u32 = 64;

/// Starts to follow. Returns the state, which the subscription delivers first.
pub(super) fn begin(subscriber: &mut Subscriber, wait: Duration) -> Result<Vec<u8>, DdsError> {
    match subscriber.next_within(wait) {
        Ok(Event::State { state, .. }) => Ok(state),
        Err(SubscribeError::Open(error)) => Err(DdsError::Outside(error)),
        Err(_) => Err(DdsError::Timeout(wait)),
        Ok(_) => Err(DdsError::Domain("a member sent an invalid message".into())),
    }
}

/// Follows discovery after its state has been restored.
pub(super) fn follow_discovery(
    followed: &Arc<ParticipantState>,
    mut subscriber: Subscriber,
) -> std::io::Result<()> {
    let shared = Arc::clone(followed);
    followed.life.spawn(move || {
        while !shared.life.has_ended() {
            match subscriber.next_within(LOOK) {
                Ok(event) => discover(&shared, &event),
                Err(SubscribeError::TimeUp) => {}
                Err(SubscribeError::Open(why)) => {
                    shared.life.lose(why);
                    return shared.gone_in_discovery(|_| true);
                }
                Err(_) => return,
            }
        }
    })
}

fn discover(shared: &ParticipantState, event: &Event) {
    match event {
        Event::Message(received) => shared.hear(&message_of(received, SubgroupId(0))),
        Event::State { state, .. } => {
            if let Err(error) = shared.take_over_discovery(state) {
                tracing::warn!(%error, "a member sent an invalid state of readers and topics");
            }
        }
        event => {
            if let Some(is_gone) = gone_by(event) {
                shared.gone_in_discovery(is_gone);
            }
        }
    }
}

/// A topic that is followed: its index and generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Followed {
    index: usize,
    generation: u64,
}

/// Follows the topic with this index and generation after its state has been restored.
pub(super) fn follow_topic(
    followed: &Arc<ParticipantState>,
    (index, generation): (usize, u64),
    mut subscriber: Subscriber,
) -> std::io::Result<()> {
    let (shared, topic) = (Arc::clone(followed), Followed { index, generation });
    lock(&followed.followed).insert((index, generation));
    let started = followed.life.spawn(move || {
        while !shared.life.has_ended() && topic.goes_on(&shared, &mut subscriber) {}
        // From here on, no reader waits for the topic.
        lock(&shared.followed).remove(&(index, generation));
    });
    if started.is_err() {
        lock(&followed.followed).remove(&(index, generation));
    }
    started
}

impl Followed {
    /// Passes new events to the topic. Returns `false` if no more will come.
    fn goes_on(self, shared: &ParticipantState, subscriber: &mut Subscriber) -> bool {
        match subscriber.next_within(LOOK) {
            Ok(event) => {
                let tell = |state: &mut TopicState| {
                    let goes_on = self.tell_together(state, event, subscriber);
                    (goes_on, state.take_timing_changed())
                };
                let told = shared.with_topic(self.index, tell);
                let (goes_on, timing_changed) = told.unwrap_or_default();
                if timing_changed {
                    shared.alarm.ring();
                }
                if !goes_on {
                    self.end(shared);
                }
                goes_on
            }
            Err(SubscribeError::TimeUp) => true,
            Err(SubscribeError::Open(why)) => {
                let is_deleted =
                    !shared.known.lock().directory.is_written(self.index, self.generation);
                if is_deleted {
                    self.end(shared);
                } else {
                    shared.life.lose(why);
                    shared.gone_in_topic(self.index, |_| true);
                }
                false
            }
            Err(_) => false,
        }
    }

    /// Passes an event to a topic, together with those that have already arrived. Returns `false`
    /// at the end.
    fn tell_together(
        self,
        state: &mut TopicState,
        first: Event,
        subscriber: &mut Subscriber,
    ) -> bool {
        let now = Now::read();
        let mut next = Some(first);
        let mut left = TOGETHER_MAX;
        while let Some(event) = next {
            if state.generation() != self.generation || !self.tell(state, &event, now) {
                return false;
            }
            left = left.saturating_sub(1);
            // The next call reports the error again.
            next = if left > 0 { subscriber.next_within(Duration::ZERO).ok() } else { None };
        }
        state.flush();
        true
    }

    fn tell(self, state: &mut TopicState, event: &Event, now: Now) -> bool {
        match event {
            Event::Message(received) => {
                state.deliver(&message_of(received, Domain::subgroup_of(self.index)), now);
            }
            Event::Changed { from } => state.history_changed(*from, now),
            Event::State { state: taken, .. } => match state.take_over(taken, now) {
                Ok(is_same) => return is_same,
                Err(error) => {
                    tracing::warn!(%error, "a member sent an invalid state of a topic");
                }
            },
            Event::Closed => return false,
            event => {
                if let Some(is_gone) = gone_by(event) {
                    state.participants_gone(is_gone, now);
                }
            }
        }
        true
    }

    /// Ends the topic: a view has closed its place, or another topic now has the place.
    fn end(self, shared: &ParticipantState) {
        // Listeners are dropped without holding the lock.
        drop(shared.with_topic(self.index, |state| {
            let is_it = state.generation() == self.generation;
            is_it.then(|| state.end(Now::read()))
        }));
    }
}

/// Returns a message in the form in which members receive it.
pub(super) fn message_of(received: &Received, subgroup: SubgroupId) -> Message<'_> {
    Message {
        subgroup,
        view: ViewId(received.view),
        place: Place(received.place_in_view),
        sender: NodeId(received.sender),
        payload: &received.payload,
        client: received.client,
        is_large: false,
        is_replayed: false,
    }
}

/// Returns a predicate for the participants that have gone with an event.
fn gone_by(event: &Event) -> Option<impl Fn(ParticipantId) -> bool + '_> {
    let (view, client) = match event {
        Event::View(view) => (Some(view), None),
        Event::Forgotten(client) => (None, Some(*client)),
        _ => return None,
    };
    Some(move |participant| match participant {
        // A participant that has just joined has no writers yet. The known writers belong to its
        // previous process.
        ParticipantId::Node(node) => {
            view.is_some_and(|view| !view.members.contains(&node) || view.joined.contains(&node))
        }
        ParticipantId::Client(id) => client == Some(id),
    })
}
