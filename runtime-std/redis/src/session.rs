//! The state of a connection that its requests depend on: its transaction, what it watches, and its
//! subscriptions.

use std::collections::BTreeSet;

use crate::batch::{Requests, request_overhead};
use crate::paced::{BATCH_WEIGHT, weight};
use crate::subscriptions::{self, Subscriber};
use crate::table::{CommandKind, Verb};
use crate::text::Text;

/// The requests between MULTI and EXEC.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) requests: Requests,
    /// Whether a request is slow.
    pub(crate) is_slow: bool,
    /// The [weight](crate::paced::weight) of its slow writes.
    slow_weight: usize,
    /// Whether a request was refused, so that EXEC must be refused too.
    pub(crate) is_refused: bool,
}

impl Transaction {
    /// Returns whether the transaction may contain this command too. All nodes execute its slow
    /// writes, which together must not take longer than those of a batch.
    pub(crate) fn has_room_for(&self, verb: Verb) -> bool {
        self.slow_weight + slow_weight(verb) <= BATCH_WEIGHT
    }

    /// Adds a request. Returns false if the transaction would be too large.
    pub(crate) fn push(&mut self, verb: Verb, arguments: &[&[u8]], bytes_max: usize) -> bool {
        let bytes: usize = arguments.iter().map(|argument| argument.len()).sum();
        let length = bytes + request_overhead(arguments.len());
        let fits = self.requests.len() + length <= bytes_max;
        self.is_slow |= verb.is_slow();
        self.slow_weight += slow_weight(verb);
        if fits {
            self.requests.push(verb as u8, arguments.iter().copied());
        } else {
            self.is_refused = true;
            self.requests = Requests::default();
        }
        fits
    }
}

/// Returns the weight of a command if it is a slow write, else zero.
fn slow_weight(verb: Verb) -> usize {
    let is_slow_write = verb.is_slow() && verb.kind() == CommandKind::Write;
    if is_slow_write { weight(verb) } else { 0 }
}

/// A connection's state.
#[derive(Debug)]
pub(crate) struct ClientSession {
    pub(crate) subscriber: Subscriber,
    /// The number that CLIENT ID replies.
    pub(crate) id: u64,
    pub(crate) name: Text,
    pub(crate) transaction: Option<Transaction>,
    /// The watched keys, each after its length and before the number of its last change.
    pub(crate) watched: Requests,
    channels: BTreeSet<Text>,
    patterns: BTreeSet<Text>,
}

impl ClientSession {
    pub(crate) fn new(subscriber: Subscriber, id: u64) -> Self {
        Self {
            subscriber,
            id,
            name: Text::default(),
            transaction: None,
            watched: Requests::default(),
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
        }
    }

    /// Returns the number of subscriptions.
    pub(crate) fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    fn names(&mut self, is_pattern: bool) -> &mut BTreeSet<Text> {
        if is_pattern { &mut self.patterns } else { &mut self.channels }
    }

    pub(crate) fn subscribe(&mut self, name: &[u8], is_pattern: bool) {
        if self.names(is_pattern).insert(name.into()) {
            subscriptions::of_process().add(name, is_pattern, self.subscriber);
        }
    }

    pub(crate) fn unsubscribe(&mut self, name: &[u8], is_pattern: bool) {
        if self.names(is_pattern).remove(name) {
            subscriptions::of_process().remove(name, is_pattern, self.subscriber);
        }
    }

    /// Returns the names of all subscriptions of a kind.
    pub(crate) fn subscribed(&self, is_pattern: bool) -> Vec<Text> {
        let names = if is_pattern { &self.patterns } else { &self.channels };
        names.iter().cloned().collect()
    }

    /// Marks the transaction, if there is one, as containing a request that was refused.
    pub(crate) fn refuse_transaction(&mut self) {
        self.transaction.iter_mut().for_each(|queued| queued.is_refused = true);
    }

    /// Forgets the transaction and what is watched.
    pub(crate) fn end_transaction(&mut self) {
        self.transaction = None;
        self.watched = Requests::default();
    }

    /// Forgets everything but the connection.
    pub(crate) fn reset(&mut self) {
        self.end_transaction();
        self.name = Text::default();
        for is_pattern in [false, true] {
            for name in self.subscribed(is_pattern) {
                self.unsubscribe(&name, is_pattern);
            }
        }
    }

    /// Returns the number of bytes that the session holds for its client.
    pub(crate) fn bytes(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, |queued| queued.requests.len());
        // Each subscription costs about 200 bytes in the tables of the process.
        queued + self.watched.len() + 200 * self.subscriptions()
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        self.reset();
    }
}
