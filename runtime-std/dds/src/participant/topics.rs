//! The topics as a participant sees them: the directory, which of its places the view has open, and
//! what was asked of both.
//!
//! A topic that is created goes through two orders. Its creation is a message of discovery: there
//! all participants agree on its place, or on why it has none. Then the participant of the view's
//! lowest rank, which keeps the places, asks the group for a view that has the place open. Deletion
//! goes the same way back: a message, after which nobody writes; a view that closes the place, up
//! to whose beginning all readers are given the same samples; and a message that frees the place.
//! If the keeper is lost, that is a change of the view, and the next lowest one goes on from what
//! the directory says.
//!
//! # Invariants
//! - A place is freed only while it is closed and no view is to come that opens it. Such a view can
//!   only come because it was asked for in the present one, and the keeper alone asks.
//! - No other lock is taken while the one here is held: a listener, which is called under others,
//!   may take it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tramontane::ReservedSubgroups;

use super::directory::{Created, Directory, Due, HeldPlace, Refusal};
use crate::domain::{Domain, TopicDescription, TopicPlaces};
use crate::error::DdsError;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::wire::Word;

/// What a participant knows of topics.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) directory: Directory,
    /// By place: the view has it open.
    open: Vec<bool>,
    /// This participant has the view's lowest rank.
    is_keeper: bool,
    /// By place: what the keeper asked the group for and no view has done yet.
    asked: BTreeMap<usize, bool>,
    /// Topics of which the keeper said that their places are free.
    freed: BTreeSet<u64>,
    /// What became of this participant's own requests.
    answers: BTreeMap<u64, Result<Created, Refusal>>,
    next_request: u64,
}

/// The same, with somebody who waits for it.
#[derive(Debug)]
pub(super) struct Topics {
    known: Mutex<Known>,
    changed: Condvar,
}

impl Topics {
    pub(super) fn new(declared: Vec<TopicDescription>, places: Vec<TopicPlaces>) -> Self {
        let known = Known {
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

    pub(super) fn lock(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    /// Tells whoever waits that something has changed.
    pub(super) fn tell(&self) {
        self.changed.notify_all();
    }

    /// Waits until something is so, at most until then.
    fn wait<T>(
        &self,
        until: Instant,
        mut is_so: impl FnMut(&mut Known) -> Option<T>,
        has_ended: impl Fn() -> bool,
    ) -> Option<T> {
        /// Between two looks whether the participant has ended.
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

    /// Waits for what becomes of a request, and then until the view has what it asked for. Nothing
    /// if the time was up first.
    pub(super) fn outcome(
        &self,
        request: u64,
        until: Instant,
        has_ended: impl Fn() -> bool,
    ) -> Option<Result<Created, Refusal>> {
        let answer = |known: &mut Known| known.answers.remove(&request);
        let created = match self.wait(until, answer, &has_ended)? {
            Ok(created) => created,
            Err(refusal) => return Some(Err(refusal)),
        };
        let is_there = |known: &mut Known| known.is_settled(&created).then_some(());
        self.wait(until, is_there, has_ended).map(|()| Ok(created))
    }

    /// Waits until there is a topic of that name that can be written and read.
    pub(super) fn await_named(
        &self,
        name: &str,
        until: Instant,
        has_ended: impl Fn() -> bool,
    ) -> bool {
        self.wait(until, |known| known.has_open(name).then_some(()), has_ended).is_some()
    }
}

impl Known {
    /// The topics that have places, by their indices.
    pub(super) fn held_topics(&self) -> BTreeMap<usize, HeldPlace> {
        let index_of =
            |(place, held): (usize, &HeldPlace)| (self.directory.index_of(place), held.clone());
        self.directory.held().map(index_of).collect()
    }

    /// The number of a request that this participant is about to make.
    pub(super) fn request(&mut self) -> u64 {
        self.next_request += 1;
        self.next_request
    }

    pub(super) fn answer(&mut self, request: u64, answer: Result<Created, Refusal>) {
        self.answers.insert(request, answer);
    }

    pub(super) fn is_open(&self, place: usize) -> bool {
        self.open.get(place).copied().unwrap_or(false)
    }

    /// Outside, where nobody is told which places a view has open: the topic that has the place can
    /// be written and read from now on, or not.
    pub(super) fn set_open(&mut self, place: usize, is_open: bool) {
        if let Some(open) = self.open.get_mut(place) {
            *open = is_open;
        }
    }

    /// Whether there is a topic of that name, and the view has it.
    pub(super) fn has_open(&self, name: &str) -> bool {
        let found = self.directory.find(name).map(|(index, ..)| self.directory.place_of(index));
        found.is_some_and(|place| place.is_none_or(|place| self.is_open(place)))
    }

    /// Whether the view has what became of a request: an open place for a topic that is there, a
    /// free one for a topic that is deleted.
    fn is_settled(&self, created: &Created) -> bool {
        let Some(place) = self.directory.place_of(created.index) else { return true };
        match self.directory.held().find(|(held, _)| *held == place) {
            Some((_, held)) if held.generation == created.generation => {
                !held.ends && self.is_open(place)
            }
            _ => true,
        }
    }

    /// A view has begun, which has these places open. Gives the places that it closed.
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

    /// The keeper's part: asks the group for what the places need, and gives what is to be said.
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

    /// A word was said.
    pub(super) fn said(&mut self, word: &Word) {
        if let Word::Free { generation } = word {
            self.freed.insert(*generation);
        }
    }
}

impl From<Refusal> for DdsError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoPlace { .. } => Self::NoPlace(refusal.to_string()),
            _ => Self::PreconditionNotMet(refusal.to_string()),
        }
    }
}
