//! Scheduled events of a network, ordered by time.

use std::collections::BTreeMap;

/// The name of one entry. Entries with the same time take effect in the order in which they were
/// scheduled.
pub(super) type CompletionEntry = (u64, u64);

/// Scheduled events, ordered by time.
#[derive(Debug)]
pub(super) struct Agenda<E> {
    events: BTreeMap<CompletionEntry, E>,
    made: u64,
}

impl<E> Agenda<E> {
    pub(super) const fn new() -> Self {
        Self { events: BTreeMap::new(), made: 0 }
    }

    /// Schedules an event.
    pub(super) fn enter(&mut self, at_ns: u64, event: E) -> CompletionEntry {
        self.made += 1;
        self.events.insert((at_ns, self.made), event);
        (at_ns, self.made)
    }

    /// Cancels an entry.
    pub(super) fn cancel(&mut self, entry: CompletionEntry) {
        self.events.remove(&entry);
    }

    /// Returns the time of the next event.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.events.first_key_value().map(|(entry, _)| entry.0)
    }

    /// Takes the next event, if it is due by this time.
    pub(super) fn take_due(&mut self, by_ns: u64) -> Option<(u64, E)> {
        let first = self.events.first_entry()?;
        let at = first.key().0;
        (at <= by_ns).then(|| (at, first.remove()))
    }
}
