//! Forgotten messages: the class of each, and a few numbers.
//!
//! The class is stored for runs of consecutive numbers with one prefix. So a history of any length
//! needs only a few runs if all its messages are delivered in the same way. The numbers
//! ([`Remains`]) are needed only if a restarted incarnation delivers the message again. They take
//! 32 bytes each and are stored in pages; beyond [`PAGES_MAX`] pages the oldest are dropped.
//!
//! Invariant: the runs of a prefix do not overlap, and adjacent runs have different classes.

use std::collections::{BTreeMap, VecDeque};

use super::mixing::MixedTable;
use super::name::Name;

/// The id of a class of forgotten messages, in order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ClassId(pub(super) u32);

/// Entries per page.
const PAGE: usize = 64;

/// The page limit: 64 MiB, enough for two million messages.
const PAGES_MAX: usize = 1 << 15;

/// Sizes at or above this value cannot be stored, so messages of such a size are never forgotten.
pub(super) const BYTES_MAX: u64 = NO_BYTES as u64;
const NO_BYTES: u32 = u32::MAX;

/// Positions at or above this value cannot be stored, so no message is forgotten once they are
/// reached.
pub(super) const PLACE_MAX: u64 = NO_PLACE as u64;
const NO_PLACE: u32 = u32::MAX;

/// The numbers that are kept of a forgotten message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retained {
    /// The line of the message's multicast.
    pub(super) line: u64,
    /// The time of the message's multicast.
    pub(super) t_ns: u64,
    digest: u64,
    place: u32,
    bytes: u32,
}

impl Retained {
    const NONE: Self = Self { line: 0, t_ns: 0, digest: 0, place: NO_PLACE, bytes: NO_BYTES };

    /// Packs these numbers. `digest` is never 0, and the others are below their limits.
    pub(super) fn new(
        line: u64,
        t_ns: u64,
        digest: Option<u64>,
        bytes: Option<u64>,
        place: Option<u64>,
    ) -> Self {
        let small = |value: Option<u64>| {
            value.and_then(|value| u32::try_from(value).ok()).unwrap_or(u32::MAX)
        };
        Self { line, t_ns, digest: digest.unwrap_or(0), place: small(place), bytes: small(bytes) }
    }

    /// Returns the hash of the message's digest.
    pub(super) fn digest(&self) -> Option<u64> {
        Some(self.digest).filter(|digest| *digest != 0)
    }

    /// Its size.
    pub(super) fn bytes(&self) -> Option<u64> {
        Some(u64::from(self.bytes)).filter(|_| self.bytes != NO_BYTES)
    }

    /// Returns the message's position in the order.
    pub(super) fn place(&self) -> Option<u64> {
        Some(u64::from(self.place)).filter(|_| self.place != NO_PLACE)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClassRun {
    /// One more than the last number.
    end: u64,
    class: ClassId,
}

/// All forgotten messages.
#[derive(Debug)]
pub(super) struct Archive {
    prefixes: MixedTable<u32, BTreeMap<u64, ClassRun>>,
    pages: MixedTable<(u32, u64), Box<[Retained; PAGE]>>,
    ages: VecDeque<(u32, u64)>,
    pages_max: usize,
}

impl Default for Archive {
    fn default() -> Self {
        Self {
            prefixes: MixedTable::default(),
            pages: MixedTable::default(),
            ages: VecDeque::new(),
            pages_max: PAGES_MAX,
        }
    }
}

impl Archive {
    /// Returns the class of a message, if it was forgotten.
    pub(super) fn class(&self, name: Name) -> Option<ClassId> {
        let (_, run) = self.prefixes.get(&name.prefix)?.range(..=name.number).next_back()?;
        (name.number < run.end).then_some(run.class)
    }

    /// Adds a message that is not in the archive.
    pub(super) fn add(&mut self, name: Name, class: ClassId, retained: Retained) {
        self.add_run(name, class);
        let key = (name.prefix, name.number / PAGE as u64);
        let page = self.pages.entry(key).or_insert_with(|| {
            self.ages.push_back(key);
            Box::new([Retained::NONE; PAGE])
        });
        page[(name.number % PAGE as u64) as usize] = retained;
        if self.pages.len() > self.pages_max
            && let Some(oldest) = self.ages.pop_front()
        {
            self.pages.remove(&oldest);
        }
    }

    /// Adds a message without keeping its numbers.
    pub(super) fn add_run(&mut self, name: Name, class: ClassId) {
        let runs = self.prefixes.entry(name.prefix).or_default();
        // A number has at most 19 digits, so adding one cannot overflow.
        let mut run = ClassRun { end: name.number.saturating_add(1), class };
        if let Some(after) = runs.get(&run.end).copied().filter(|after| after.class == class) {
            runs.remove(&run.end);
            run.end = after.end;
        }
        match runs.range_mut(..name.number).next_back() {
            Some((_, before)) if before.end == name.number && before.class == class => {
                before.end = run.end
            }
            _ => {
                runs.insert(name.number, run);
            }
        }
    }

    /// Removes a message, and returns it with the numbers that are still known.
    pub(super) fn take(&mut self, name: Name) -> Option<(ClassId, Option<Retained>)> {
        let runs = self.prefixes.get_mut(&name.prefix)?;
        let (first, run) = runs.range_mut(..=name.number).next_back()?;
        let (first, run) = (*first, *run);
        if name.number >= run.end {
            return None;
        }
        runs.remove(&first);
        if first < name.number {
            runs.insert(first, ClassRun { end: name.number, class: run.class });
        }
        if name.number + 1 < run.end {
            runs.insert(name.number + 1, run);
        }
        let page = self.pages.get(&(name.prefix, name.number / PAGE as u64));
        // A dropped page may have been re-created with empty entries.
        let retained = page
            .map(|page| page[(name.number % PAGE as u64) as usize])
            .filter(|retained| retained.line > 0);
        Some((run.class, retained))
    }

    /// Iterates over all messages and their numbers that are still known, run by run.
    pub(super) fn all(&self) -> impl Iterator<Item = (Name, ClassId, Option<Retained>)> {
        let runs = self.prefixes.iter().flat_map(|(prefix, runs)| {
            runs.iter().flat_map(move |(first, run)| {
                (*first..run.end).map(move |number| (Name { prefix: *prefix, number }, run.class))
            })
        });
        runs.map(|(name, class)| {
            let page = self.pages.get(&(name.prefix, name.number / PAGE as u64));
            let retained = page.map(|page| page[(name.number % PAGE as u64) as usize]);
            (name, class, retained.filter(|retained| retained.line > 0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> Name {
        Name { prefix: 1, number }
    }

    fn retained(line: u64) -> Retained {
        Retained::new(line, 5, Some(line + 1), None, Some(line * 2))
    }

    fn runs(archive: &Archive) -> Vec<(u64, u64, u32)> {
        archive.prefixes[&1].iter().map(|(first, run)| (*first, run.end, run.class.0)).collect()
    }

    #[test]
    fn consecutive_messages_of_a_class_are_merged() {
        let mut archive = Archive::default();
        for number in [3, 1, 0, 2, 5, 4] {
            archive.add(name(number), ClassId(7), retained(number + 1));
        }
        assert_eq!(runs(&archive), [(0, 6, 7)]);
        assert_eq!(archive.class(name(5)), Some(ClassId(7)));
        assert_eq!(archive.class(name(6)), None);
        assert_eq!(archive.class(Name { prefix: 2, number: 5 }), None);
    }

    #[test]
    fn taking_one_message_keeps_the_others() {
        let mut archive = Archive::default();
        (0..5).for_each(|number| archive.add(name(number), ClassId(0), retained(number + 1)));
        assert_eq!(archive.take(name(2)), Some((ClassId(0), Some(retained(3)))));
        assert_eq!(archive.take(name(2)), None);
        archive.add(name(2), ClassId(1), retained(3));
        assert_eq!(runs(&archive), [(0, 2, 0), (2, 3, 1), (3, 5, 0)]);
        assert_eq!(archive.take(name(0)), Some((ClassId(0), Some(retained(1)))));
        assert_eq!(archive.take(name(4)), Some((ClassId(0), Some(retained(5)))));
        assert_eq!(archive.all().count(), 3);
    }

    #[test]
    fn oldest_pages_are_dropped_but_classes_remain() {
        let mut archive = Archive { pages_max: 2, ..Archive::default() };
        (0..PAGE as u64 * 3)
            .for_each(|number| archive.add(name(number), ClassId(0), retained(number + 1)));
        assert_eq!(archive.take(name(0)), Some((ClassId(0), None)));
        assert_eq!(archive.take(name(70)), Some((ClassId(0), Some(retained(71)))));
    }

    #[test]
    fn stored_numbers_are_returned_unchanged() {
        let retained = Retained::new(9, 8, None, Some(0), None);
        assert_eq!((retained.digest(), retained.bytes(), retained.place()), (None, Some(0), None));
        let retained = Retained::new(9, 8, Some(1), None, Some(0));
        assert_eq!(
            (retained.digest(), retained.bytes(), retained.place()),
            (Some(1), None, Some(0))
        );
    }
}
