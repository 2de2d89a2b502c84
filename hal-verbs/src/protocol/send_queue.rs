//! The credits of one connection: requests posted, requests completed, and the next request to be
//! signalled.
//!
//! Requests are numbered in the order in which they were posted. A reliable connection completes
//! them in that order, so one completion covers all earlier requests. Therefore, only every n-th
//! request needs a completion (HAL-2).
//!
//! # Invariants
//! - `completed <= signalled <= posted`, and `posted - completed <= depth`.
//! - Fewer than `signal_every` requests follow the last signalled one, unless a caller ignores
//!   [`SendQueue::signals`]. So a full queue always has a completion still to come, because
//!   `signal_every` is at most half of the depth.

use std::collections::VecDeque;

use tramontane_core::fabric::Token;

/// The depth of a queue and its division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depths {
    /// Maximum number of requests in flight.
    pub(crate) depth: u32,
    /// Number of requests reserved for rings and similar messages. Data never uses them.
    pub(crate) reserve: u32,
    /// Maximum number of requests from one signalled request to the next.
    pub(crate) signal_every: u32,
}

/// The state of the requests in flight on one connection.
#[derive(Debug)]
pub(crate) struct SendQueue {
    depths: Depths,
    posted: u64,
    signalled: u64,
    completed: u64,
    /// Lists with a token: the number of requests up to their end, and the token.
    tokens: VecDeque<(u64, Token)>,
}

impl SendQueue {
    /// Creates an empty queue and allocates all its memory.
    pub(crate) fn new(depths: Depths) -> Self {
        let tokens = VecDeque::with_capacity(usize::try_from(depths.depth).unwrap_or(0));
        Self { depths, posted: 0, signalled: 0, completed: 0, tokens }
    }

    /// Returns the number of requests not known to be complete.
    pub(crate) const fn in_flight(&self) -> u64 {
        self.posted - self.completed
    }

    /// Returns the number of requests posted so far, which is the number of the next one.
    pub(crate) const fn posted(&self) -> u64 {
        self.posted
    }

    /// Returns whether there is room for this many requests of data.
    pub(crate) fn has_room(&self, requests: usize) -> bool {
        self.has_room_within(requests, self.depths.depth.saturating_sub(self.depths.reserve))
    }

    /// Returns whether there is room for one control request of the connection.
    pub(crate) fn has_room_for_control(&self) -> bool {
        self.has_room_within(1, self.depths.depth)
    }

    fn has_room_within(&self, requests: usize, depth: u32) -> bool {
        let wanted = u64::try_from(requests).unwrap_or(u64::MAX);
        self.in_flight().saturating_add(wanted) <= u64::from(depth)
    }

    /// Returns the slot for a request's staged bytes. The slot is free, because the request that
    /// used it before is complete.
    pub(crate) fn slot(&self, number: u64) -> usize {
        usize::try_from(number % u64::from(self.depths.depth.max(1))).unwrap_or(0)
    }

    /// Returns whether a list of this many requests must end with a signalled one.
    pub(crate) fn signals(&self, requests: u64, has_token: bool) -> bool {
        let behind = self.posted - self.signalled;
        has_token || behind.saturating_add(requests) >= u64::from(self.depths.signal_every)
    }

    /// Records a posted list.
    pub(crate) fn push(&mut self, requests: u64, is_signalled: bool, token: Option<Token>) {
        self.posted += requests;
        if is_signalled {
            self.signalled = self.posted;
        }
        if let Some(token) = token {
            self.tokens.push_back((self.posted, token));
        }
    }

    /// Returns the number of requests without a completion that no later one covers.
    pub(crate) const fn unsignalled(&self) -> u64 {
        self.posted - self.signalled
    }

    /// Records a completion: all requests up to this number are complete. Returns `false` if that
    /// was already known, or if the request was never posted.
    pub(crate) fn complete(&mut self, number: u64) -> bool {
        let is_new = number >= self.completed && number < self.posted;
        if is_new {
            self.completed = number + 1;
            self.signalled = self.signalled.max(self.completed);
        }
        is_new
    }

    /// Returns the next token whose list is complete.
    pub(crate) fn next_done(&mut self) -> Option<Token> {
        let (end, token) = *self.tokens.front()?;
        if end > self.completed {
            return None;
        }
        self.tokens.pop_front();
        Some(token)
    }

    /// Returns the number of lists with a token that are not complete.
    pub(crate) fn waiting(&self) -> usize {
        self.tokens.len()
    }

    /// Discards the requests in flight after a reset, because they will have no completions.
    pub(crate) fn forget(&mut self) {
        self.completed = self.posted;
        self.signalled = self.posted;
        self.tokens.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPTHS: Depths = Depths { depth: 16, reserve: 4, signal_every: 5 };

    fn post(queue: &mut SendQueue, requests: usize, token: Option<u64>) -> Option<bool> {
        if !queue.has_room(requests) {
            return None;
        }
        let count = u64::try_from(requests).expect("small");
        let is_signalled = queue.signals(count, token.is_some());
        queue.push(count, is_signalled, token.map(Token));
        Some(is_signalled)
    }

    #[test]
    fn full_send_queue_contains_a_signalled_request() {
        for requests in 1..=4 {
            let mut queue = SendQueue::new(DEPTHS);
            while post(&mut queue, requests, None).is_some() {}
            assert!(queue.unsignalled() < 5 && queue.signalled > queue.completed);
            assert!(queue.has_room_for_control(), "data leaves the reserve alone");
            let last = queue.signalled - 1;
            assert!(queue.complete(last));
            assert!(post(&mut queue, requests, None).is_some());
        }
    }

    #[test]
    fn single_writes_are_signalled_at_the_interval() {
        let mut queue = SendQueue::new(DEPTHS);
        let mut signalled = 0;
        for number in 0..100 {
            if post(&mut queue, 1, None).expect("room") {
                signalled += 1;
                assert!(queue.complete(number));
            }
        }
        assert_eq!(signalled, 20);
    }

    #[test]
    fn completion_covers_earlier_requests() {
        let mut queue = SendQueue::new(DEPTHS);
        assert_eq!(post(&mut queue, 2, Some(7)), Some(true));
        assert_eq!(post(&mut queue, 1, Some(8)), Some(true));
        assert_eq!(post(&mut queue, 1, Some(9)), Some(true));
        assert_eq!(queue.next_done(), None);
        assert!(queue.complete(2));
        assert_eq!(queue.next_done(), Some(Token(7)));
        assert_eq!(queue.next_done(), Some(Token(8)));
        assert_eq!(queue.next_done(), None);
        assert_eq!(queue.waiting(), 1);
    }

    #[test]
    fn forgotten_requests_are_never_completed() {
        let mut queue = SendQueue::new(DEPTHS);
        assert_eq!(post(&mut queue, 3, Some(7)), Some(true));
        assert!(!queue.complete(3));
        queue.forget();
        assert!(!queue.complete(2));
        assert_eq!(queue.in_flight(), 0);
        assert_eq!(queue.next_done(), None);
    }

    #[test]
    fn staging_slots_in_flight_are_disjoint() {
        let mut queue = SendQueue::new(DEPTHS);
        for _ in 0..100 {
            let first = queue.posted();
            let slots: std::collections::BTreeSet<usize> =
                (first - queue.in_flight()..first + 1).map(|number| queue.slot(number)).collect();
            assert_eq!(slots.len(), usize::try_from(queue.in_flight()).expect("small") + 1);
            if post(&mut queue, 1, None).is_none() {
                let done = queue.signalled - 1;
                assert!(queue.complete(done));
            }
        }
    }
}
