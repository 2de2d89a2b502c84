//! Lent lists of state, with one element per link, per message of a window, or per group.
//!
//! Opening a replica or a client checks once that each list is long enough. An index past the end
//! of a list reads as a vacant element: a link without a view, or a message that does not exist.
//!
//! Requirement: TRM-8.

use super::link::LinkId;
use crate::ids::GroupId;

/// An index into a list.
pub(super) trait Indexed {
    /// Returns this index as a number.
    fn index(self) -> usize;
}

impl Indexed for usize {
    fn index(self) -> usize {
        self
    }
}

impl Indexed for LinkId {
    fn index(self) -> usize {
        Self::index(self)
    }
}

impl Indexed for GroupId {
    fn index(self) -> usize {
        Self::index(self)
    }
}

/// A list that was lent.
#[derive(Debug)]
pub(super) struct Places<'s, S> {
    all: &'s mut [S],
    vacant: S,
}

impl<'s, S: Default> Places<'s, S> {
    pub(super) fn new(all: &'s mut [S]) -> Self {
        Self { all, vacant: S::default() }
    }

    /// Returns the element at an index.
    pub(super) fn at(&self, place: impl Indexed) -> &S {
        self.all.get(place.index()).unwrap_or(&self.vacant)
    }

    /// Returns the element at an index, for changing. A change past the end of the list has no
    /// effect that matters, because only elements of the list are ever attached or taken.
    pub(super) fn at_mut(&mut self, place: impl Indexed) -> &mut S {
        self.all.get_mut(place.index()).unwrap_or(&mut self.vacant)
    }

    pub(super) fn iter(&self) -> core::slice::Iter<'_, S> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> core::slice::IterMut<'_, S> {
        self.all.iter_mut()
    }
}
