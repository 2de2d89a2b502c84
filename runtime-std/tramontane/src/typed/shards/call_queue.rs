//! The calls of a client, between those who make them and the thread that sends them.
//!
//! # Invariants
//! - A call is in the queue, in flight, or has ended.
//! - Once the client has ended, no call is added, and none is left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use tramontane_runtime::shards::{ClientError, Description, Destinations, Places};

use super::call::CallEntry;
use super::no_answers::NoAnswers;
use crate::typed::limits::ReplicatedOptions;

/// The limits on calls, and the names of groups.
pub(super) struct CallLimits {
    pub(super) description: Description,
    pub(super) places: Places,
    /// The time without a majority after which calls to a group end. After the same time, a group
    /// forgets a client that is not connected.
    pub(super) lease: Duration,
    pub(super) message_max: usize,
    pub(super) answer_max: u32,
    pub(super) window: u64,
    waiting: ReplicatedOptions,
}

impl CallLimits {
    pub(super) fn new(
        description: &Description,
        places: Places,
        waiting: ReplicatedOptions,
    ) -> Self {
        Self {
            description: description.clone(),
            places,
            lease: Duration::from_millis(description.client_lease_ms),
            message_max: usize::try_from(description.message_max).unwrap_or(usize::MAX),
            answer_max: description.answer_max,
            window: u64::from(description.client_window),
            waiting,
        }
    }
}

/// A call that waits to be sent.
pub(super) struct WaitingCall {
    pub(super) groups: Destinations,
    pub(super) command: Vec<u8>,
    pub(super) call: Arc<CallEntry>,
}

/// A call in flight, with the groups that order its command.
pub(super) struct SentCall {
    pub(super) path: Destinations,
    pub(super) call: Arc<CallEntry>,
}

/// The calls of one client.
pub(super) struct CallQueue {
    state: Mutex<QueueState>,
    pub(super) limits: Arc<CallLimits>,
    /// Wakes the thread that sends. Another waker replaces it when the client connects anew.
    waker: Mutex<Waker>,
}

pub(super) struct QueueState {
    pub(super) waiting: VecDeque<WaitingCall>,
    waiting_bytes: usize,
    /// The calls in flight, by the numbers of their messages.
    pub(super) in_flight: BTreeMap<u64, SentCall>,
    /// The time until which calls in flight are awaited, once the client is leaving.
    pub(super) leaves_until: Option<Instant>,
    pub(super) ended: Option<ClientError>,
}

impl CallQueue {
    pub(super) fn new(limits: Arc<CallLimits>, waker: Waker) -> Self {
        let state = QueueState {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            in_flight: BTreeMap::new(),
            leaves_until: None,
            ended: None,
        };
        Self { state: Mutex::new(state), limits, waker: Mutex::new(waker) }
    }

    /// Sets the waker of the thread that sends.
    pub(super) fn set_waker(&self, waker: Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = waker;
    }

    fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waker.wake();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call, unless it can never be answered.
    pub(super) fn add(&self, groups: Destinations, command: &[u8]) -> Arc<CallEntry> {
        let refused = |why| CallEntry::new(Some(Err(why)));
        let limits = &*self.limits;
        if limits.places.overlay().lowest_common_ancestor(groups).is_none() {
            return refused(NoAnswers::NoSuchGroup);
        }
        let (bytes, limit) = (command.len(), limits.message_max);
        if bytes > limit {
            return refused(NoAnswers::TooLarge { bytes, limit });
        }
        let mut state = self.lock();
        if let Some(why) = state.refusal() {
            return refused(NoAnswers::NotSent(why));
        }
        let waiting = state.waiting.len();
        if limits.waiting.is_full(waiting, state.waiting_bytes, bytes) {
            return refused(NoAnswers::Overloaded { waiting });
        }
        let call = CallEntry::new(None);
        state.waiting_bytes += bytes;
        state.waiting.push_back(WaitingCall {
            groups,
            command: command.to_vec(),
            call: Arc::clone(&call),
        });
        drop(state);
        self.wake();
        call
    }

    /// Lets the client leave. Calls that wait are not sent.
    pub(super) fn leave(&self, until: Instant) {
        let mut state = self.lock();
        state.leaves_until.get_or_insert(until);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.iter().for_each(|of| of.call.give(Err(NoAnswers::NotSent(ClientError::Left))));
        self.wake();
    }

    /// Ends the calls whose commands are for groups without a majority, or pass through one.
    pub(super) fn end_calls_to(&self, down: Destinations) {
        let CallLimits { places, lease, .. } = &*self.limits;
        let first = |path: Destinations| {
            let group = path.iter().find(|group| down.contains(*group)).unwrap_or_default();
            (places.group_name(group).to_owned(), *lease)
        };
        let mut ended = Vec::new();
        let mut state = self.lock();
        let QueueState { waiting, waiting_bytes, in_flight, .. } = &mut *state;
        in_flight.retain(|_, SentCall { path, call }| {
            if path.meets(down) {
                let (group, lease) = first(*path);
                ended.push((Arc::clone(call), NoAnswers::NoMajority { group, lease }));
            }
            !path.meets(down)
        });
        waiting.retain(|WaitingCall { groups, command, call }| {
            let path = places.path(*groups);
            if path.meets(down) {
                *waiting_bytes -= command.len();
                let (group, lease) = first(path);
                ended.push((Arc::clone(call), NoAnswers::NotSentWithoutMajority { group, lease }));
            }
            !path.meets(down)
        });
        drop(state);
        ended.into_iter().for_each(|(call, why)| call.give(Err(why)));
    }

    /// Ends all calls.
    pub(super) fn end(&self, why: &ClientError) {
        let mut state = self.lock();
        state.ended.get_or_insert(why.clone());
        let waiting = std::mem::take(&mut state.waiting);
        let in_flight = std::mem::take(&mut state.in_flight);
        drop(state);
        waiting.iter().for_each(|of| of.call.give(Err(NoAnswers::NotSent(why.clone()))));
        in_flight.values().for_each(|sent| sent.call.give(Err(NoAnswers::Unknown(why.clone()))));
    }
}

impl QueueState {
    /// Returns why no calls are accepted.
    pub(super) fn refusal(&self) -> Option<ClientError> {
        let leaves = self.leaves_until.map(|_| ClientError::Left);
        self.ended.clone().or(leaves)
    }

    /// Takes the first call that waits.
    pub(super) fn take(&mut self) -> Option<WaitingCall> {
        let taken = self.waiting.pop_front()?;
        self.waiting_bytes -= taken.command.len();
        Some(taken)
    }
}
