//! Error texts differ from each other, so that an operator can tell them apart.

use std::collections::BTreeSet;
use std::fmt::Display;

/// Asserts that every text is non-empty, has no line break, and differs from all others.
pub fn tell_apart<T: Display>(said: &[T]) {
    let texts: BTreeSet<String> = said.iter().map(T::to_string).collect();
    assert_eq!(texts.len(), said.len(), "two say the same: {texts:?}");
    for text in &texts {
        assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
    }
}
