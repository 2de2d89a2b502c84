//! The connections that receive published messages at this member.
//!
//! PUBLISH travels through the order like other commands, so subscribers at all members receive all
//! messages in the same order. Subscriptions belong to a connection and to nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::inbox::ThreadInbox;
use crate::pattern;
use crate::protocol::Reply;
use crate::text::Text;

/// A connection of a thread of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subscriber {
    /// The thread's number.
    pub(crate) thread: usize,
    /// The connection's token in its thread.
    pub(crate) token: u64,
}

/// The subscriptions of this process.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// The number of subscriptions, so that PUBLISH need not lock if there are none.
    count: AtomicUsize,
    state: Mutex<SubscriptionState>,
}

#[derive(Debug, Default)]
struct SubscriptionState {
    threads: Vec<Arc<ThreadInbox>>,
    channels: BTreeMap<Text, BTreeSet<Subscriber>>,
    patterns: BTreeMap<Text, BTreeSet<Subscriber>>,
}

/// Returns the subscriptions of this process.
pub(crate) fn of_process() -> &'static Subscriptions {
    static SUBSCRIPTIONS: OnceLock<Subscriptions> = OnceLock::new();
    SUBSCRIPTIONS.get_or_init(Subscriptions::default)
}

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, SubscriptionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thread with connections, and returns its number.
    pub(crate) fn add_thread(&self, inbox: Arc<ThreadInbox>) -> usize {
        let mut state = self.lock();
        state.threads.push(inbox);
        state.threads.len() - 1
    }

    pub(crate) fn add(&self, name: &[u8], is_pattern: bool, subscriber: Subscriber) {
        let mut state = self.lock();
        let names = state.names(is_pattern);
        if names.entry(name.into()).or_default().insert(subscriber) {
            self.count.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(crate) fn remove(&self, name: &[u8], is_pattern: bool, subscriber: Subscriber) {
        let mut state = self.lock();
        let names = state.names(is_pattern);
        let Some(subscribers) = names.get_mut(name) else { return };
        if subscribers.remove(&subscriber) {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
        if subscribers.is_empty() {
            names.remove(name);
        }
    }

    /// Hands a message to its subscribers, and returns their number.
    pub(crate) fn publish(&self, channel: &[u8], message: &[u8]) -> usize {
        if self.count.load(Ordering::SeqCst) == 0 {
            return 0;
        }
        let state = self.lock();
        let mut count = 0;
        if let Some(subscribers) = state.channels.get(channel) {
            let push = pushed(&[b"message", channel, message]);
            count += state.hand_over(subscribers, &push);
        }
        for (pattern, subscribers) in &state.patterns {
            if pattern::matches(pattern, channel) {
                let push = pushed(&[b"pmessage", pattern, channel, message]);
                count += state.hand_over(subscribers, &push);
            }
        }
        count
    }

    /// Returns the channels that have subscribers, and their number.
    pub(crate) fn channels(&self, matching: Option<&[u8]>) -> Vec<(Text, usize)> {
        let state = self.lock();
        let channels = state.channels.iter();
        let channels = channels.map(|(name, subscribers)| (name.clone(), subscribers.len()));
        channels
            .filter(|(name, _)| matching.is_none_or(|sought| pattern::matches(sought, name)))
            .collect()
    }

    /// Returns the number of patterns that have subscribers.
    pub(crate) fn patterns(&self) -> usize {
        self.lock().patterns.len()
    }
}

impl SubscriptionState {
    fn names(&mut self, is_pattern: bool) -> &mut BTreeMap<Text, BTreeSet<Subscriber>> {
        if is_pattern { &mut self.patterns } else { &mut self.channels }
    }

    fn hand_over(&self, subscribers: &BTreeSet<Subscriber>, message: &Arc<[u8]>) -> usize {
        for subscriber in subscribers {
            if let Some(inbox) = self.threads.get(subscriber.thread) {
                inbox.push_message(subscriber.token, message);
            }
        }
        subscribers.len()
    }
}

/// Encodes a message for subscribers.
fn pushed(parts: &[&[u8]]) -> Arc<[u8]> {
    let mut reply = Reply::kept(usize::MAX);
    reply.bulks(parts.iter().copied());
    reply.into_bytes().into()
}
