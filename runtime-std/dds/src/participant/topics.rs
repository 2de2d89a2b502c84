//! The topics as a participant sees them: the directory, the places that are open in the view, and
//! the requests to both.
//!
//! Creating a topic takes two steps. The first is a discovery message, by which all participants
//! agree on the topic's place, or on why it has none. Then the participant with the view's lowest
//! rank, which keeps the places, asks the group for a view in which the place is open. Deletion
//! takes the reverse path: first a message after which the topic cannot be written, then a view
//! that closes the place, before which all readers receive the same samples, and finally a message
//! that frees the place. If the keeper is lost, the view changes, and the member with the next
//! lowest rank continues from the directory.
//!
//! # Invariants
//! - A place is freed only while it is closed and no coming view opens it. Such a view can come
//!   only if it was requested in the current view, and only the keeper makes requests.
//! - No other lock is taken while this one is held, because a listener, which is called under other
//!   locks, may take it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tramontane::ReservedSubgroups;

use super::directory::{Created, Directory, Due, HeldPlace, TopicRefusal};
use crate::domain::{Domain, TopicDescription, TopicPlaces};
use crate::error::DdsError;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::wire::Word;

/// A participant's knowledge of topics.
#[derive(Debug)]
pub(super) struct KnownTopics {
    pub(super) directory: Directory,
    /// For each place, whether it is open in the current view.
    open: Vec<bool>,
    /// Whether this participant has the view's lowest rank.
    is_keeper: bool,
    /// For each place, the keeper's requests to the group that no view has fulfilled yet.
    asked: BTreeMap<usize, bool>,
    /// Topics whose places the keeper has reported as free.
    freed: BTreeSet<u64>,
    /// The results of this participant's own requests.
    answers: BTreeMap<u64, Result<Created, TopicRefusal>>,
    next_request: u64,
}

/// The known topics, with a signal for waiting threads.
#[derive(Debug)]
pub(super) struct Topics {
    known: Mutex<KnownTopics>,
    changed: Condvar,
}

impl Topics {
    pub(super) fn new(declared: Vec<TopicDescription>, places: Vec<TopicPlaces>) -> Self {
        let known = KnownTopics {
            open: places.iter().map(|_| false).collect(),
            directory: Directory::new(declared, places),
            is_keeper: false,
            asked: BTreeMap::new(),
            freed: BTreeSet::new(),
            answers: BTreeMap::new(),
            next_request: 0,
        };
        Self { known: Mutex::new(known), changed: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, KnownTopics> {
        lock(&self.known)
    }

    /// Notifies waiting threads of a change.
    pub(super) fn tell(&self) {
        self.changed.notify_all();
    }

    /// Waits until a condition holds or the deadline has passed.
    fn wait<T>(
        &self,
        until: Instant,
        mut is_so: impl FnMut(&mut KnownTopics) -> Option<T>,
        has_ended: impl Fn() -> bool,
    ) -> Option<T> {
        /// Interval between checks whether the participant has ended.
        const LOOK: Duration = Duration::from_millis(50);
        let mut known = self.lock();
        loop {
            if let Some(found) = is_so(&mut known) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || has_ended() {
                return None;
            }
            let waited = self.changed.wait_timeout(known, left.min(LOOK));
            known = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the result of a request, and then until the current view reflects it. Returns
    /// `None` after a timeout.
    pub(super) fn outcome(
        &self,
        request: u64,
        until: Instant,
        has_ended: impl Fn() -> bool,
    ) -> Option<Result<Created, TopicRefusal>> {
        let answer = |known: &mut KnownTopics| known.answers.remove(&request);
        let created = match self.wait(until, answer, &has_ended)? {
            Ok(created) => created,
            Err(refusal) => return Some(Err(refusal)),
        };
        let is_there = |known: &mut KnownTopics| known.is_settled(&created).then_some(());
        self.wait(until, is_there, has_ended).map(|()| Ok(created))
    }

    /// Waits until a topic with this name exists and can be written and read.
    pub(super) fn await_named(
        &self,
        name: &str,
        until: Instant,
        has_ended: impl Fn() -> bool,
    ) -> bool {
        self.wait(until, |known| known.has_open(name).then_some(()), has_ended).is_some()
    }
}

impl KnownTopics {
    /// Returns the topics that have places, by index.
    pub(super) fn held_topics(&self) -> BTreeMap<usize, HeldPlace> {
        let index_of =
            |(place, held): (usize, &HeldPlace)| (self.directory.index_of(place), held.clone());
        self.directory.held().map(index_of).collect()
    }

    /// Returns the number of this participant's next request.
    pub(super) fn request(&mut self) -> u64 {
        self.next_request += 1;
        self.next_request
    }

    pub(super) fn answer(&mut self, request: u64, answer: Result<Created, TopicRefusal>) {
        self.answers.insert(request, answer);
    }

    pub(super) fn is_open(&self, place: usize) -> bool {
        self.open.get(place).copied().unwrap_or(false)
    }

    /// Sets whether the topic at a place can be written and read. Used by external participants,
    /// which do not know the places that are open in a view.
    pub(super) fn set_open(&mut self, place: usize, is_open: bool) {
        if let Some(open) = self.open.get_mut(place) {
            *open = is_open;
        }
    }

    /// Returns whether a topic with this name is open in the view.
    pub(super) fn has_open(&self, name: &str) -> bool {
        let found = self.directory.find(name).map(|(index, ..)| self.directory.place_of(index));
        found.is_some_and(|place| place.is_none_or(|place| self.is_open(place)))
    }

    /// Returns whether the result of a request is reflected in the view: an open place for an
    /// existing topic, a free one for a deleted topic.
    fn is_settled(&self, created: &Created) -> bool {
        let Some(place) = self.directory.place_of(created.index) else { return true };
        match self.directory.held().find(|(held, _)| *held == place) {
            Some((_, held)) if held.generation == created.generation => {
                !held.ends && self.is_open(place)
            }
            _ => true,
        }
    }

    /// Handles a view in which these places are open. Returns the places that it closed.
    pub(super) fn view_changed(
        &mut self,
        is_keeper: bool,
        is_open: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        self.is_keeper = is_keeper;
        let mut closed = Vec::new();
        for (place, open) in self.open.iter_mut().enumerate() {
            let was_open = std::mem::replace(open, is_open(place));
            if was_open && !*open {
                closed.push(place);
            }
            if self.asked.get(&place) == Some(open) {
                self.asked.remove(&place);
            }
        }
        closed
    }

    /// Does the keeper's work: asks the group for the views that the places need, and returns the
    /// messages to send.
    pub(super) fn keep(&mut self, reserved: &ReservedSubgroups) -> Vec<Word> {
        if !self.is_keeper {
            return Vec::new();
        }
        let mut words = Vec::new();
        for place in 0..self.directory.places() {
            let is_asked = self.asked.get(&place) == Some(&true);
            let opens = match self.directory.due(place, self.is_open(place), is_asked) {
                Some(Due::Open) => true,
                Some(Due::Close) => false,
                Some(Due::Free(generation)) => {
                    if !self.freed.contains(&generation) {
                        words.push(Word::Free { generation });
                    }
                    continue;
                }
                None => continue,
            };
            if self.asked.get(&place) == Some(&opens) {
                continue;
            }
            let subgroup = Domain::subgroup_of(self.directory.index_of(place));
            let was_asked = if opens { reserved.open(subgroup) } else { reserved.close(subgroup) };
            if was_asked {
                self.asked.insert(place, opens);
            }
        }
        words
    }

    /// Records that a message has been sent.
    pub(super) fn said(&mut self, word: &Word) {
        if let Word::Free { generation } = word {
            self.freed.insert(*generation);
        }
    }
}

impl From<TopicRefusal> for DdsError {
    fn from(refusal: TopicRefusal) -> Self {
        match refusal {
            TopicRefusal::NoPlace { .. } => Self::NoPlace(refusal.to_string()),
            _ => Self::PreconditionNotMet(refusal.to_string()),
        }
    }
}
