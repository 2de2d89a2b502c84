//! The keys, their values, and the times at which they expire.
//!
//! # Invariants
//! - Everything here depends only on the batches that were applied: there is no clock, no random
//!   number, and no order of a hash table.
//! - `expiries` contains a pair for each key that has a time, and no other.
//! - A key whose time has passed is absent for every command, whether or not it has been removed.
//! - No collection is empty.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::limits::LONG_SUMS_MAX;
use crate::refusal::CommandRefusal;
use crate::text::Text;
use crate::value::{Stored, Value};

/// The number of expired keys that one batch removes. The others are removed by the next ones.
const EXPIRED_PER_BATCH: usize = 100;

/// The number of bits of a key's hash that tell apart the absent keys that a client watches.
const REMOVAL_BITS: u32 = 16;

/// A key in the order of its hash. A scan follows this order, so its cursor is a hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct HashedKey {
    hash: u64,
    key: Text,
}

/// A key that is looked up, without a copy of its bytes.
trait SoughtKey {
    fn parts(&self) -> (u64, &[u8]);
}

impl SoughtKey for HashedKey {
    fn parts(&self) -> (u64, &[u8]) {
        (self.hash, &self.key)
    }
}

impl SoughtKey for (u64, &[u8]) {
    fn parts(&self) -> (u64, &[u8]) {
        *self
    }
}

impl<'k> Borrow<dyn SoughtKey + 'k> for HashedKey {
    fn borrow(&self) -> &(dyn SoughtKey + 'k) {
        self
    }
}

impl PartialEq for dyn SoughtKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn SoughtKey + '_ {}

impl PartialOrd for dyn SoughtKey + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn SoughtKey + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

/// Hashes a key. Zero is not a hash, because it is the cursor of a scan's beginning and end.
fn hash(key: &[u8]) -> u64 {
    xxh3_64(key).max(1)
}

/// Returns the place of a key in the table of removals.
const fn removal_place(hash: u64) -> u16 {
    (hash >> (u64::BITS - REMOVAL_BITS)) as u16
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeyEntry {
    value: Value,
    /// The time at which the key expires, in milliseconds since 1970.
    expires_at_ms: Option<u64>,
    /// The number of the last change, for WATCH.
    version: u64,
}

/// All keys. See the [module](self).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Keyspace {
    entries: BTreeMap<HashedKey, KeyEntry>,
    expiries: BTreeSet<(u64, HashedKey)>,
    /// The latest time that a batch brought, in milliseconds since 1970.
    now_ms: u64,
    /// The number of changes so far.
    changes: u64,
    /// The numbers of the last removals of keys, by the first bits of their hashes. An absent key
    /// that is created and removed again has another number then, so WATCH notices it. The keys
    /// that share these bits share a number: this costs EXEC a needless nil, but bounds the memory.
    removals: BTreeMap<u16, u64>,
    /// The number of the last FLUSHALL, which removed every key.
    cleared: u64,
    /// The number of sums with long numbers in this batch.
    #[serde(skip)]
    long_sums: usize,
}

impl Keyspace {
    /// Begins a batch: advances the time to the batch's, unless it is already later.
    pub(crate) fn advance(&mut self, now_ms: u64) {
        self.long_sums = 0;
        self.now_ms = self.now_ms.max(now_ms);
        for _ in 0..EXPIRED_PER_BATCH {
            match self.expiries.first() {
                Some((at_ms, _)) if *at_ms <= self.now_ms => {}
                _ => return,
            }
            if let Some((_, key)) = self.expiries.pop_first() {
                self.entries.remove(&key);
                self.note_removal(key.hash);
            }
        }
    }

    /// Counts a sum with a long number. Fails if the batch contains too many: thousands would keep
    /// the nodes from showing that they are alive.
    pub(crate) fn count_long_sum(&mut self) -> Result<(), CommandRefusal> {
        self.long_sums += 1;
        if self.long_sums > LONG_SUMS_MAX {
            return Err(CommandRefusal::LONG_SUMS);
        }
        Ok(())
    }

    pub(crate) const fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Returns a number that differs after every change.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the number of keys, with those that have expired and are still to be removed.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of keys that have a time.
    pub(crate) fn expiring(&self) -> usize {
        self.expiries.len()
    }

    fn is_live(&self, entry: &KeyEntry) -> bool {
        entry.expires_at_ms.is_none_or(|at_ms| at_ms > self.now_ms)
    }

    fn entry(&self, key: &[u8]) -> Option<&KeyEntry> {
        let sought = (hash(key), key);
        let entry = self.entries.get(&sought as &dyn SoughtKey)?;
        self.is_live(entry).then_some(entry)
    }

    pub(crate) fn value(&self, key: &[u8]) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.entry(key).is_some()
    }

    /// Returns a number that differs after every change of the key, also if it is absent before and
    /// after.
    pub(crate) fn version(&self, key: &[u8]) -> u64 {
        let sought = (hash(key), key);
        match self.entries.get(&sought as &dyn SoughtKey) {
            Some(entry) if self.is_live(entry) => entry.version,
            // An expired key that is still to be removed. No change has this number.
            Some(entry) => !entry.version,
            None => {
                let removed = self.removals.get(&removal_place(sought.0)).copied();
                removed.unwrap_or(0).max(self.cleared)
            }
        }
    }

    fn note_removal(&mut self, hash: u64) {
        self.changes += 1;
        self.removals.insert(removal_place(hash), self.changes);
    }

    /// Returns the key's time, or `None` within if it has none.
    pub(crate) fn expires_at_ms(&self, key: &[u8]) -> Option<Option<u64>> {
        self.entry(key).map(|entry| entry.expires_at_ms)
    }

    /// Returns the value of a key, which must be of this type.
    pub(crate) fn read<T: Stored>(&self, key: &[u8]) -> Result<Option<&T>, CommandRefusal> {
        let Some(value) = self.value(key) else { return Ok(None) };
        T::of(value).map(Some).ok_or(CommandRefusal::WRONG_TYPE)
    }

    /// Changes the value of a key, which must be of this type. A key that does not exist begins
    /// with an empty value; a key whose value is empty at the end is removed.
    pub(crate) fn edit<T: Stored, R>(
        &mut self,
        key: &[u8],
        edit: impl FnOnce(&mut T) -> Result<R, CommandRefusal>,
    ) -> Result<R, CommandRefusal> {
        self.edit_from(key, T::default, edit)
    }

    /// Changes the value of a key in the same way as [`edit`](Self::edit). A key that does not
    /// exist begins with `initial`.
    pub(crate) fn edit_from<T: Stored, R>(
        &mut self,
        key: &[u8],
        initial: impl FnOnce() -> T,
        edit: impl FnOnce(&mut T) -> Result<R, CommandRefusal>,
    ) -> Result<R, CommandRefusal> {
        self.remove_expired(key);
        let sought = (hash(key), key);
        let Some(entry) = self.entries.get_mut(&sought as &dyn SoughtKey) else {
            let mut value = initial();
            let result = edit(&mut value)?;
            if !value.is_void() {
                self.set(key, value.into_value(), None);
            }
            return Ok(result);
        };
        let value = T::of_mut(&mut entry.value).ok_or(CommandRefusal::WRONG_TYPE)?;
        let result = edit(value)?;
        let is_void = value.is_void();
        self.changes += 1;
        entry.version = self.changes;
        if is_void {
            self.remove(key);
        }
        Ok(result)
    }

    /// Sets the value and the time of a key.
    pub(crate) fn set(&mut self, key: &[u8], value: Value, expires_at_ms: Option<u64>) {
        self.changes += 1;
        let entry = KeyEntry { value, expires_at_ms, version: self.changes };
        let sought = (hash(key), key);
        if let Some(existing) = self.entries.get_mut(&sought as &dyn SoughtKey) {
            let previous = std::mem::replace(existing, entry);
            self.note_expiry(key, previous.expires_at_ms, expires_at_ms);
        } else {
            self.entries.insert(HashedKey { hash: sought.0, key: key.into() }, entry);
            self.note_expiry(key, None, expires_at_ms);
        }
    }

    /// Sets the time of a key. Returns false if there is no such key.
    pub(crate) fn set_expiry(&mut self, key: &[u8], expires_at_ms: Option<u64>) -> bool {
        self.remove_expired(key);
        let sought = (hash(key), key);
        let Some(entry) = self.entries.get_mut(&sought as &dyn SoughtKey) else { return false };
        self.changes += 1;
        entry.version = self.changes;
        let previous = std::mem::replace(&mut entry.expires_at_ms, expires_at_ms);
        self.note_expiry(key, previous, expires_at_ms);
        true
    }

    /// Removes a key, and returns its value and its time.
    pub(crate) fn take(&mut self, key: &[u8]) -> Option<(Value, Option<u64>)> {
        let sought = (hash(key), key);
        let entry = self.entries.remove(&sought as &dyn SoughtKey)?;
        self.note_expiry(key, entry.expires_at_ms, None);
        self.note_removal(sought.0);
        self.is_live(&entry).then_some((entry.value, entry.expires_at_ms))
    }

    /// Removes a key. Returns false if there was no such key.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        self.take(key).is_some()
    }

    fn remove_expired(&mut self, key: &[u8]) {
        let sought = (hash(key), key);
        let entry = self.entries.get(&sought as &dyn SoughtKey);
        if entry.is_some_and(|entry| !self.is_live(entry)) {
            self.remove(key);
        }
    }

    /// Notes that the time of a key has changed.
    fn note_expiry(&mut self, key: &[u8], previous: Option<u64>, now: Option<u64>) {
        if previous == now {
            return;
        }
        let hashed = HashedKey { hash: hash(key), key: key.into() };
        if let Some(at_ms) = previous {
            self.expiries.remove(&(at_ms, hashed.clone()));
        }
        if let Some(at_ms) = now {
            self.expiries.insert((at_ms, hashed));
        }
    }

    /// Removes all keys.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.expiries.clear();
        self.removals.clear();
        self.changes += 1;
        self.cleared = self.changes;
    }

    /// Returns all keys, in the order of scans.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Text> {
        self.entries_from(0).map(|(_, key, _)| key)
    }

    /// Returns the keys from a cursor on, with their cursors and values.
    pub(crate) fn entries_from(&self, cursor: u64) -> impl Iterator<Item = (u64, &Text, &Value)> {
        let from = HashedKey { hash: cursor, key: Text::default() };
        let live = self.entries.range(from..).filter(|(_, entry)| self.is_live(entry));
        live.map(|(key, entry)| (key.hash, &key.key, &entry.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(keys: &mut Keyspace, key: &[u8], expires_at_ms: Option<u64>) {
        keys.set(key, Value::Text(key.into()), expires_at_ms);
    }

    #[test]
    fn versions_differ_after_every_change_of_key() {
        let mut keys = Keyspace::default();
        let mut seen = vec![keys.version(b"k")];
        let mut check = |keys: &Keyspace, step: &str| {
            let version = keys.version(b"k");
            assert!(!seen.contains(&version), "{step}");
            seen.push(version);
        };
        set(&mut keys, b"k", None);
        check(&keys, "created");
        keys.remove(b"k");
        check(&keys, "removed");
        set(&mut keys, b"k", Some(10));
        check(&keys, "created with a time");
        keys.advance(10);
        check(&keys, "removed when it expired");
        // More keys than one batch removes expire before this one.
        for key in 0..200_u64 {
            set(&mut keys, &key.to_le_bytes(), Some(20));
        }
        set(&mut keys, b"k", Some(30));
        keys.advance(30);
        assert!(!keys.has(b"k") && keys.len() > 0);
        check(&keys, "expired, but not removed yet");
        set(&mut keys, b"k", None);
        check(&keys, "created again");
        keys.clear();
        check(&keys, "removed with all keys");
    }

    #[test]
    fn changes_of_other_keys_leave_versions() {
        let mut keys = Keyspace::default();
        set(&mut keys, b"there", None);
        let versions = |keys: &Keyspace| (keys.version(b"there"), keys.version(b"absent"));
        let before = versions(&keys);
        set(&mut keys, b"other", None);
        keys.remove(b"other");
        assert_eq!(versions(&keys), before);
    }

    #[test]
    fn removals_take_bounded_memory() {
        let mut keys = Keyspace::default();
        for key in 0..200_000_u64 {
            set(&mut keys, &key.to_le_bytes(), None);
            keys.remove(&key.to_le_bytes());
        }
        assert!(keys.removals.len() <= 1 << REMOVAL_BITS);
    }
}
