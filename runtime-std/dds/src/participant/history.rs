//! A reader outside that begins at a place of a logged topic: a thread reads the log for it, and
//! hands it over to the topic as it is followed, once it has come so far.
//!
//! # Invariants
//! - It is handed each sample once, in the topic's order: the topic takes it over under its lock,
//!   at the number up to which it has been handed the log.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tramontane::SubgroupId;
use tramontane_client::{Event, SubscribeError, Subscriber};

use super::following::{Life, message_of, spawn};
use super::shared::{Shared, upcall};
use crate::domain::Domain;
use crate::time::Now;
use crate::topic::TopicState;

/// With so few messages to go, the topic waits for the rest.
const REST_MAX: u64 = 256;

/// Between two looks whether reader and participant are there.
const LOOK: Duration = Duration::from_millis(100);

/// How long the topic waits for the rest, at most, before it goes on.
const REST_WAIT: Duration = Duration::from_millis(200);

/// What has been read of the log.
pub(super) struct History {
    pub(super) shared: Arc<Shared>,
    pub(super) life: Arc<Life>,
    pub(super) topic: usize,
    pub(super) subscriber: Subscriber,
    /// The topic as the log tells it, with the reader.
    pub(super) told: TopicState,
}

impl History {
    /// Reads, in a thread of its own.
    pub(super) fn start(mut self) -> std::io::Result<JoinHandle<()>> {
        spawn(move || while self.goes_on() {})
    }

    fn goes_on(&mut self) -> bool {
        if self.life.has_ended() || !self.told.has_wanted_reader() {
            return false;
        }
        let so_far = self.shared.with_topic(self.topic, |topic| topic.ordinal());
        let left = so_far.unwrap_or(0).saturating_sub(self.told.ordinal());
        if left > REST_MAX { self.read(left - REST_MAX) } else { !self.hand_over() }
    }

    /// Reads so many messages at most. False if no more will come.
    fn read(&mut self, most: u64) -> bool {
        let Self { life, topic, subscriber, told, .. } = self;
        let mut wait = LOOK;
        for _ in 0..most {
            match subscriber.next_within(wait) {
                Ok(event) => upcall(|| tell(told, *topic, &event)),
                Err(SubscribeError::Open(why)) => {
                    life.lose(why);
                    upcall(|| told.participants_gone(|_| true, Now::read()));
                    return false;
                }
                Err(_) => break,
            }
            wait = Duration::ZERO;
        }
        upcall(|| told.flush());
        true
    }

    /// Has the topic take the reader over. False if what is left of the log did not come in time.
    fn hand_over(&mut self) -> bool {
        let Self { shared, topic, subscriber, told, .. } = self;
        let taken = shared.with_topic(*topic, |followed| {
            while told.ordinal() < followed.ordinal() {
                let Ok(event) = subscriber.next_within(REST_WAIT) else { return false };
                tell(told, *topic, &event);
            }
            followed.take_readers_of(told, Now::read());
            true
        });
        taken.unwrap_or(true)
    }
}

fn tell(told: &mut TopicState, topic: usize, event: &Event) {
    let subgroup: SubgroupId = Domain::subgroup_of(topic);
    match event {
        Event::Message(received) => told.deliver(&message_of(received, subgroup), Now::read()),
        Event::Gap { to, .. } => told.skip_to(*to),
        _ => {}
    }
}
