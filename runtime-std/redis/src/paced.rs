//! Slow requests, whose work grows with the keys or the size of a value.
//!
//! A node delivers nothing while it executes a request, and the other nodes remove it if that lasts
//! for `failure_timeout_ms`. So slow requests travel in batches of their own. A thread has one such
//! batch in flight, which takes a bounded time, and between two of them other requests are executed
//! and the node shows that it is alive.
//!
//! # Invariant
//! A connection passes nothing on after a slow run until that run has been answered. So the rest of
//! the run's reads can be sent later, and they still come before the connection's next request.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::batch::{CollectedBatch, RequestRun, Requests};
use crate::table::{CommandKind, Verb};

/// The maximum weight of a batch, and of the slow writes of a transaction. A read weighs one, and a
/// transaction fills a batch.
pub(crate) const BATCH_WEIGHT: usize = 64;

/// The weight of a write. All nodes execute all of a batch's writes.
const WRITE_WEIGHT: usize = 4;

/// The weight of a write that may look up millions of members.
const STORE_WEIGHT: usize = BATCH_WEIGHT / 2;

/// The time after which a batch executes no further reads. They travel in a later batch.
pub(crate) const BATCH_TIME: Duration = Duration::from_millis(50);

/// The time after which a transaction executes no further slow reads. They are refused.
pub(crate) const TRANSACTION_TIME: Duration = Duration::from_millis(500);

/// The time that has been spent on slow reads. It never decides what happens to the keys.
#[derive(Debug, Default)]
pub(crate) struct SpentTime(Option<Instant>);

impl SpentTime {
    /// Returns whether less than this time has passed since the first call.
    pub(crate) fn is_below(&mut self, limit: Duration) -> bool {
        self.0.get_or_insert_with(Instant::now).elapsed() < limit
    }
}

/// Returns the weight of a slow command.
pub(crate) fn weight(verb: Verb) -> usize {
    match verb {
        Verb::Exec => BATCH_WEIGHT,
        Verb::SInterStore | Verb::SUnionStore | Verb::SDiffStore => STORE_WEIGHT,
        _ if verb.kind() == CommandKind::Read => 1,
        _ => WRITE_WEIGHT,
    }
}

/// Slow requests of one connection that are answered together.
#[derive(Debug, Default)]
struct SlowRun {
    token: u64,
    requests: Requests,
    count: usize,
    weight: usize,
}

/// The slow requests of a thread's connections that wait for their batch.
#[derive(Debug, Default)]
pub(crate) struct SlowRequests {
    waiting: VecDeque<SlowRun>,
    is_in_flight: bool,
}

impl SlowRequests {
    /// Adds a request. Returns whether it begins a run, which has replies of its own.
    pub(crate) fn push(&mut self, token: u64, verb: Verb, arguments: &[&[u8]]) -> bool {
        let begins = !self.is_last(token);
        if begins {
            self.waiting.push_back(SlowRun { token, ..SlowRun::default() });
        }
        if let Some(run) = self.waiting.back_mut() {
            run.requests.push(verb as u8, arguments.iter().copied());
            run.count += 1;
            run.weight += weight(verb);
        }
        begins
    }

    /// Returns whether the last run is one of this connection.
    pub(crate) fn is_last(&self, token: u64) -> bool {
        self.waiting.back().is_some_and(|run| run.token == token)
    }

    /// Removes the runs of a connection that has ended.
    pub(crate) fn remove(&mut self, token: u64) {
        self.waiting.retain(|run| run.token != token);
    }

    /// Adds the reads that the batch had no time for: of each run its token, its reads and their
    /// number. The first run took the batch's time, so it comes last in the next batch.
    pub(crate) fn push_rests(&mut self, mut rests: Vec<(u64, Requests, usize)>) {
        if !rests.is_empty() {
            rests.rotate_left(1);
        }
        for (token, requests, count) in rests {
            self.waiting.push_back(SlowRun { token, requests, count, weight: count });
        }
    }

    /// Returns whether a further read of this connection may join its run.
    pub(crate) fn has_room(&self, token: u64, bytes: usize, bytes_max: usize) -> bool {
        let run = self.waiting.back().filter(|run| run.token == token);
        run.is_some_and(|run| run.weight < BATCH_WEIGHT && run.requests.len() + bytes <= bytes_max)
    }

    /// Notes that the batch in flight has been answered.
    pub(crate) fn end_batch(&mut self) {
        self.is_in_flight = false;
    }

    /// Returns whether a batch may be taken.
    pub(crate) fn has_next_batch(&self) -> bool {
        !self.is_in_flight && !self.waiting.is_empty()
    }

    /// Takes the next batch, unless one is in flight.
    pub(crate) fn take(&mut self, bytes_max: usize) -> Option<CollectedBatch> {
        if !self.has_next_batch() {
            return None;
        }
        self.is_in_flight = true;
        let (mut batch, mut weight) = (CollectedBatch::default(), 0);
        while let Some(run) = self.waiting.pop_front() {
            let bytes = batch.requests.len() + run.requests.len() + 1;
            if !batch.runs.is_empty() && (weight + run.weight > BATCH_WEIGHT || bytes > bytes_max) {
                self.waiting.push_front(run);
                break;
            }
            weight += run.weight;
            batch.requests.append(run.requests);
            batch.requests.end_run();
            batch.runs.push(RequestRun { token: run.token, requests: run.count });
        }
        batch.is_slow = true;
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_batch_is_in_flight() {
        let mut slow = SlowRequests::default();
        for token in 0..20 {
            assert!(slow.push(token, Verb::LRem, &[b"list", b"0", b"x"]));
        }
        assert!(slow.push(30, Verb::LPos, &[b"list", b"x"]));
        assert!(slow.has_room(30, 10, 1000) && !slow.has_room(19, 10, 1000));
        assert!(!slow.push(30, Verb::LPos, &[b"list", b"x"]));
        let runs = |batch: Option<CollectedBatch>| batch.map(|batch| batch.runs.len());
        assert_eq!(runs(slow.take(1000)), Some(16));
        assert_eq!(runs(slow.take(1000)), None);
        slow.end_batch();
        assert_eq!(runs(slow.take(1000)), Some(5));
        slow.end_batch();
        assert_eq!(runs(slow.take(1000)), None);
        assert!(slow.push(1, Verb::Exec, &[b"", b""]));
        assert!(!slow.has_room(1, 10, 1000), "nothing joins a transaction");
        assert!(slow.push(2, Verb::LPos, &[b"list", b"x"]));
        assert_eq!(runs(slow.take(1000)), Some(1));
        slow.end_batch();
        assert!(slow.push(3, Verb::LPos, &[b"list", b"x"]));
        slow.remove(2);
        let rest = slow.take(1000).map(|batch| batch.runs[0].token);
        assert_eq!(rest, Some(3), "the runs of an ended connection are removed");
        slow.end_batch();
        slow.push_rests((1..=3).map(|token| (token, Requests::default(), 1)).collect());
        let tokens = slow.take(1000).map(|batch| batch.runs.iter().map(|run| run.token).collect());
        assert_eq!(tokens, Some(vec![2, 3, 1]), "the run that took the time comes last");
    }
}
