//! What errors say: each its own words, so that an operator can tell them apart.

use std::collections::BTreeSet;
use std::fmt::Display;

/// Each says something, without a line's end, and no two say the same.
pub fn tell_apart<T: Display>(said: &[T]) {
    let texts: BTreeSet<String> = said.iter().map(T::to_string).collect();
    assert_eq!(texts.len(), said.len(), "two say the same: {texts:?}");
    for text in &texts {
        assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
    }
}
