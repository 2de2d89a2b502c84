//! The answers between those who give them and those who wait for them.
//!
//! # Invariants
//! - An answer is given once, and taken once.
//! - An entry is kept until nobody holds it: neither the waiting caller, nor the sending side,
//!   which lets go of it with the answer.
//! - No code of the program runs here, because the callers hold a lock: replaced wakers, and
//!   answers that nobody waits for, are returned.

use std::task::Waker;

use tramontane_runtime::group::Ordinal;

use super::not_answered::NotAnswered;

/// The answer to a command, `None` for the arrival of a barrier, or the reason why it never comes,
/// which is rare, and so in memory of its own.
pub(super) type AnswerOutcome<A> = Result<Option<A>, Box<NotAnswered>>;

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(usize);

/// The answers that are being waited for, or have not been taken.
pub(super) struct AnswerTable<A> {
    entries: Vec<AnswerEntry<A>>,
    /// The entries that nobody holds.
    vacant: Vec<usize>,
}

struct AnswerEntry<A> {
    holders: u8,
    is_barrier: bool,
    /// The number of the message, once it has been sent.
    ordinal: Option<Ordinal>,
    is_answered: bool,
    outcome: Option<AnswerOutcome<A>>,
    waker: Option<Waker>,
}

impl<A> AnswerTable<A> {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), vacant: Vec::new() }
    }

    /// Adds an entry, which the caller and the sending side hold.
    pub(super) fn add(&mut self, is_barrier: bool) -> Key {
        let entry = AnswerEntry {
            holders: 2,
            is_barrier,
            ordinal: None,
            is_answered: false,
            outcome: None,
            waker: None,
        };
        if let Some(key) = self.vacant.pop() {
            self.entries[key] = entry;
            return Key(key);
        }
        self.entries.push(entry);
        Key(self.entries.len() - 1)
    }

    /// Holds an entry once more.
    pub(super) fn hold(&mut self, key: Key) {
        self.entries[key.0].holders += 1;
    }

    /// Lets go of an entry. Returns what is to be dropped without the lock.
    #[must_use]
    pub(super) fn release(&mut self, key: Key) -> (Option<AnswerOutcome<A>>, Option<Waker>) {
        let entry = &mut self.entries[key.0];
        entry.holders -= 1;
        if entry.holders == 0 {
            self.vacant.push(key.0);
        }
        (entry.outcome.take_if(|_| entry.holders == 0), entry.waker.take())
    }

    pub(super) fn ordinal(&self, key: Key) -> Option<Ordinal> {
        self.entries[key.0].ordinal
    }

    /// Notes that the message has been sent.
    pub(super) fn sent(&mut self, key: Key, ordinal: Ordinal) {
        self.entries[key.0].ordinal = Some(ordinal);
    }

    pub(super) fn is_barrier(&self, key: Key) -> bool {
        self.entries[key.0].is_barrier
    }

    pub(super) fn is_answered(&self, key: Key) -> bool {
        self.entries[key.0].is_answered
    }

    /// Stores an answer, and lets go of the entry. Leaves the answer if it has no taker. Returns
    /// the waker of the caller that waits.
    #[must_use]
    pub(super) fn give(
        &mut self,
        key: Key,
        outcome: &mut Option<AnswerOutcome<A>>,
    ) -> Option<Waker> {
        let entry = &mut self.entries[key.0];
        entry.is_answered = true;
        entry.holders -= 1;
        if entry.holders == 0 {
            self.vacant.push(key.0);
            return None;
        }
        entry.outcome = outcome.take();
        entry.waker.take()
    }

    /// Stores the reason why there is no answer, and lets go of the entry.
    #[must_use]
    pub(super) fn fail(&mut self, key: Key, why: NotAnswered) -> Option<Waker> {
        self.give(key, &mut Some(Err(Box::new(why))))
    }

    /// Takes the answer and the number of its message, once both are known. A reason why there is
    /// no answer needs no number.
    pub(super) fn take(&mut self, key: Key) -> Option<(AnswerOutcome<A>, Ordinal)> {
        let entry = &mut self.entries[key.0];
        let ordinal = match (&entry.outcome, entry.ordinal) {
            (Some(Ok(_)), None) => return None,
            (_, ordinal) => ordinal.unwrap_or(Ordinal(u64::MAX)),
        };
        entry.outcome.take().map(|outcome| (outcome, ordinal))
    }

    /// Registers the waker of the caller that waits. Returns the replaced one.
    #[must_use]
    pub(super) fn register(&mut self, key: Key, waker: &Waker) -> Option<Waker> {
        let registered = &mut self.entries[key.0].waker;
        match registered {
            Some(same) if same.will_wake(waker) => None,
            _ => registered.replace(waker.clone()),
        }
    }
}
