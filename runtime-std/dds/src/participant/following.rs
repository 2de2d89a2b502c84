//! What a participant outside is told: it follows discovery, and each topic that it reads, each by
//! a thread of its own, as a client that knows what a member knows.
//!
//! # Invariants
//! - A topic's messages, views and ends of clients go to its state in the order in which members
//!   are told them: so its readers are handed what members' readers are, in the same order.
//! - Once no member takes the participant any more, all writers and readers that it knows are gone.

use std::sync::Arc;
use std::time::Duration;

use tramontane::{Message, NodeId, Place, SubgroupId, ViewId};
use tramontane_client::{Event, Received, SubscribeError, Subscriber};

use super::handles::ParticipantId;
use super::shared::{Shared, upcall};
use crate::domain::Domain;
use crate::error::DdsError;
use crate::time::Now;
use crate::topic::TopicState;
use crate::waitset::lock;
use crate::wire::Word;

/// Between two looks whether the participant has ended.
const LOOK: Duration = Duration::from_millis(100);

/// The most events that are taken together.
const TOGETHER_MAX: u32 = 64;

/// Begins to follow: the state, which is what comes first.
pub(super) fn begin(subscriber: &mut Subscriber, wait: Duration) -> Result<Vec<u8>, DdsError> {
    match subscriber.next_within(wait) {
        Ok(Event::State { state, .. }) => Ok(state),
        Err(SubscribeError::Open(error)) => Err(DdsError::Outside(error)),
        Err(_) => Err(DdsError::Timeout(wait)),
        Ok(_) => Err(DdsError::Domain("a member says what makes no sense".into())),
    }
}

/// Follows discovery, whose state was taken over.
pub(super) fn follow_discovery(
    followed: &Arc<Shared>,
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

fn discover(shared: &Shared, event: &Event) {
    match event {
        Event::Message(received) => {
            let message = message_of(received, SubgroupId(0));
            // Topics that come and go at run time are for members alone.
            if let Ok(Word::Reader(said)) = Word::decode(message.payload) {
                let participant = ParticipantId::of(&message);
                upcall(|| lock(&shared.discovery).heard(participant, said));
            }
        }
        Event::State { state, .. } => {
            let taken = upcall(|| lock(&shared.discovery).take_over(state));
            if let Err(error) = taken {
                tracing::warn!(%error, "what a member knows of readers makes no sense");
            }
        }
        event => {
            if let Some(is_gone) = gone_by(event) {
                shared.gone_in_discovery(is_gone);
            }
        }
    }
}

/// Follows a topic, whose state was taken over.
pub(super) fn follow_topic(
    followed: &Arc<Shared>,
    topic: usize,
    mut subscriber: Subscriber,
) -> std::io::Result<()> {
    let shared = Arc::clone(followed);
    followed.life.spawn(move || {
        while !shared.life.has_ended() {
            match subscriber.next_within(LOOK) {
                Ok(event) => {
                    let tell = |state: &mut TopicState| {
                        tell_together(state, topic, event, &mut subscriber);
                        state.take_timing_changed()
                    };
                    if shared.with_topic(topic, tell) == Some(true) {
                        shared.alarm.ring();
                    }
                }
                Err(SubscribeError::TimeUp) => {}
                Err(SubscribeError::Open(why)) => {
                    shared.life.lose(why);
                    return shared.gone_in_topic(topic, |_| true);
                }
                Err(_) => return,
            }
        }
    })
}

/// Tells a topic an event, and those that have come meanwhile.
fn tell_together(state: &mut TopicState, topic: usize, first: Event, subscriber: &mut Subscriber) {
    let now = Now::read();
    let mut next = Some(first);
    let mut left = TOGETHER_MAX;
    while let Some(event) = next {
        tell(state, topic, &event, now);
        left = left.saturating_sub(1);
        // An error is told again.
        next = if left > 0 { subscriber.next_within(Duration::ZERO).ok() } else { None };
    }
    state.flush();
}

fn tell(state: &mut TopicState, topic: usize, event: &Event, now: Now) {
    match event {
        Event::Message(received) => {
            state.deliver(&message_of(received, Domain::subgroup_of(topic)), now);
        }
        Event::State { state: taken, .. } => {
            if let Err(error) = state.take_over(taken, now) {
                tracing::warn!(%error, "what a member knows of a topic makes no sense");
            }
        }
        event => {
            if let Some(is_gone) = gone_by(event) {
                state.participants_gone(is_gone, now);
            }
        }
    }
}

/// A message as members are handed it.
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

/// Which participants are gone with an event.
fn gone_by(event: &Event) -> Option<impl Fn(ParticipantId) -> bool + '_> {
    let (view, client) = match event {
        Event::View(view) => (Some(view), None),
        Event::Forgotten(client) => (None, Some(*client)),
        _ => return None,
    };
    Some(move |participant| match participant {
        // Who has just joined has no writers yet: what is known is of its former process.
        ParticipantId::Node(node) => {
            view.is_some_and(|view| !view.members.contains(&node) || view.joined.contains(&node))
        }
        ParticipantId::Client(id) => client == Some(id),
    })
}
