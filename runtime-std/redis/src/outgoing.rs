//! Requests on their way to the group: everything that a thread read at once, in as few batches as
//! fit.

use crate::batch::{CollectedBatch, RequestRun, request_overhead};
use crate::paced::SlowRequests;
use crate::table::Verb;

/// Collects requests into batches.
#[derive(Debug)]
pub(crate) struct BatchCollector {
    /// The maximum number of bytes of a batch with several requests.
    batch_max: usize,
    current: CollectedBatch,
    /// Whether the last run of the current batch continues.
    is_open: bool,
    full: Vec<CollectedBatch>,
    pub(crate) slow: SlowRequests,
}

impl BatchCollector {
    pub(crate) fn new(batch_max: usize) -> Self {
        let (current, full) = (CollectedBatch::default(), Vec::new());
        Self { batch_max, current, is_open: false, full, slow: SlowRequests::default() }
    }

    /// Adds a request of a connection. Returns whether it begins a run, which has replies of its
    /// own.
    pub(crate) fn push(&mut self, token: u64, verb: Verb, arguments: &[&[u8]]) -> bool {
        let bytes: usize = arguments.iter().map(|argument| argument.len()).sum();
        let length = bytes + request_overhead(arguments.len());
        let held = self.current.requests.len();
        if held > 0 && held + length > self.batch_max {
            self.close_batch();
        }
        let runs = &mut self.current.runs;
        let continued = runs.last_mut().filter(|run| self.is_open && run.token == token);
        let begins = continued.is_none();
        match continued {
            Some(run) => run.requests += 1,
            None => {
                self.end_run();
                self.current.runs.push(RequestRun { token, requests: 1 });
                self.is_open = true;
            }
        }
        self.current.requests.push(verb as u8, arguments.iter().copied());
        begins
    }

    /// Ends the current run, so that the next request begins one.
    pub(crate) fn end_run(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.current.requests.end_run();
        }
    }

    fn close_batch(&mut self) {
        self.end_run();
        if !self.current.runs.is_empty() {
            self.full.push(std::mem::take(&mut self.current));
        }
    }

    /// Returns whether a further slow read may join the connection's run.
    pub(crate) fn has_room_for_slow(&self, token: u64, arguments: &[&[u8]]) -> bool {
        let bytes: usize = arguments.iter().map(|argument| argument.len()).sum();
        self.slow.has_room(token, bytes + request_overhead(arguments.len()), self.batch_max)
    }

    /// Takes all batches, of which at most one is slow.
    pub(crate) fn take(&mut self) -> Vec<CollectedBatch> {
        self.close_batch();
        let mut batches = std::mem::take(&mut self.full);
        batches.extend(self.slow.take(self.batch_max));
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_together_share_batch() {
        let mut outgoing = BatchCollector::new(1000);
        assert!(outgoing.push(1, Verb::Get, &[b"a"]));
        assert!(!outgoing.push(1, Verb::Get, &[b"b"]));
        assert!(outgoing.push(2, Verb::Get, &[b"c"]));
        outgoing.end_run();
        assert!(outgoing.push(2, Verb::Get, &[b"d"]));
        let batches = outgoing.take();
        let runs: Vec<_> = batches
            .iter()
            .flat_map(|batch| &batch.runs)
            .map(|run| (run.token, run.requests))
            .collect();
        assert_eq!((batches.len(), runs), (1, vec![(1, 2), (2, 1), (2, 1)]));
        assert!(outgoing.take().is_empty());
    }

    #[test]
    fn full_batch_ends_its_run() {
        let mut outgoing = BatchCollector::new(100);
        assert!(outgoing.push(1, Verb::Set, &[b"key", &[0; 60]]));
        assert!(outgoing.push(1, Verb::Set, &[b"key", &[0; 60]]), "in the next batch");
        assert!(outgoing.push(1, Verb::Set, &[b"key", &[0; 600]]), "alone, although it is large");
        let lengths: Vec<_> = outgoing.take().iter().map(|batch| batch.runs.len()).collect();
        assert_eq!(lengths, [1, 1, 1]);
    }
}
