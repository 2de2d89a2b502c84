//! State that is lent as a list with one element for each of something: for each link, each message
//! of a window, each group.
//!
//! Opening a replica or a client checks once that each list is long enough. A place behind the end
//! of a list reads as a vacant element: a link without a view, or a message that is not there.
//!
//! Requirement: TRM-8.

use super::link::LinkId;
use crate::ids::GroupId;

/// What a list can be asked by.
pub(super) trait Indexed {
    /// The place in the list.
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

    /// What is kept at a place.
    pub(super) fn at(&self, place: impl Indexed) -> &S {
        self.all.get(place.index()).unwrap_or(&self.vacant)
    }

    /// The same, to be changed. What is stored behind the end of the list is kept nowhere that
    /// matters: only what is here is ever attached or taken.
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
