//! Compact message names.
//!
//! Most drivers name messages `prefix/NUMBER`. Such a name is stored as two numbers, and each
//! prefix text is stored once. Any other name is stored as text while its message is held, and as a
//! 64-bit hash permanently. Among a million such names, the chance that two are confused is 3 in
//! 100 million.
//!
//! Invariant: two texts have the same [`Name`] only if they are equal, except for hash collisions.

use std::hash::BuildHasher as _;

use super::mixing::{Mix, MixedTable};

/// A message's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name {
    /// The prefix's id, or [`OTHER`] if there is no prefix.
    pub(super) prefix: u32,
    /// The number after the prefix, or a running number.
    pub(super) number: u64,
}

/// The prefix of names that are not `prefix/NUMBER`.
const OTHER: u32 = 0;

/// The most digits that always fit into 64 bits.
const DIGITS_MAX: usize = 19;

/// All names seen so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    mix: Mix,
    prefixes: MixedTable<Box<str>, u32>,
    prefix_texts: Vec<Box<str>>,
    others: MixedTable<u64, u64>,
    other_texts: MixedTable<u64, Box<str>>,
}

impl Names {
    /// Returns the name of a text.
    pub(super) fn name(&mut self, text: &str) -> Name {
        match split(text) {
            Some((prefix, number)) => Name { prefix: self.prefix(prefix), number },
            None => self.other(text),
        }
    }

    fn prefix(&mut self, prefix: &str) -> u32 {
        if let Some(known) = self.prefixes.get(prefix) {
            return *known;
        }
        self.prefix_texts.push(prefix.into());
        // The first prefix is 1: 0 is for names without a prefix.
        let new = u32::try_from(self.prefix_texts.len()).unwrap_or(u32::MAX);
        self.prefixes.insert(prefix.into(), new);
        new
    }

    fn other(&mut self, text: &str) -> Name {
        let next = self.others.len() as u64;
        let number = *self.others.entry(self.mix.text(text)).or_insert(next);
        self.other_texts.entry(number).or_insert_with(|| text.into());
        Name { prefix: OTHER, number }
    }

    /// Returns a hash of a delivery of this name, or 0 for `None` (no message).
    pub(super) fn footprint(&self, name: Option<Name>) -> u64 {
        name.map_or(0, |name| self.mix.hash_one(name).max(1))
    }

    /// Returns the text of a name, if that text may be dropped.
    pub(super) fn fleeting(&self, name: Name) -> Option<Box<str>> {
        self.other_texts.get(&name.number).filter(|_| name.prefix == OTHER).cloned()
    }

    /// Drops the text of a name that need not be shown again.
    pub(super) fn forget(&mut self, name: Name) {
        if name.prefix == OTHER {
            self.other_texts.remove(&name.number);
        }
    }

    /// Returns the text of a name.
    pub(super) fn text(&self, name: Name) -> String {
        if name.prefix == OTHER {
            return self
                .other_texts
                .get(&name.number)
                .map_or_else(|| "a message".to_owned(), ToString::to_string);
        }
        let prefix = self.prefix_texts.get(name.prefix as usize - 1).map_or("", |text| text);
        format!("{prefix}/{}", name.number)
    }
}

/// Splits `prefix/NUMBER` if the number is in canonical form, so that the text can be restored.
fn split(text: &str) -> Option<(&str, u64)> {
    let (prefix, digits) = text.rsplit_once('/')?;
    let plain = !digits.is_empty()
        && digits.len() <= DIGITS_MAX
        && (digits == "0" || !digits.starts_with('0'))
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { Some((prefix, digits.parse().ok()?)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_are_distinct_and_keep_their_text() {
        let mut names = Names::default();
        let texts = [
            "n0/1/0",
            "n0/1/1",
            "n1/1/0",
            "n0/1/00",
            "n0/1/",
            "n0/1",
            "/1",
            "1",
            "",
            "x",
            "n0/1/-1",
            "n0/1/99999999999999999999",
            "n0/1/9999999999999999999",
            "n0/1/٣",
        ];
        let seen: Vec<Name> = texts.iter().map(|text| names.name(text)).collect();
        for (place, text) in texts.iter().enumerate() {
            assert_eq!(names.name(text), seen[place]);
            assert_eq!(names.text(seen[place]), *text);
            assert!(!seen[..place].contains(&seen[place]), "{text} is taken for another");
        }
    }

    #[test]
    fn name_keeps_its_number_after_text_is_forgotten() {
        let mut names = Names::default();
        let name = names.name("hello");
        names.forget(name);
        assert_eq!(names.text(name), "a message");
        assert_eq!(names.name("hello"), name);
        assert_eq!(names.text(name), "hello");
    }
}
