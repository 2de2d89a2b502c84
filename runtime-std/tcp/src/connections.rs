//! The connections of a member, and which of them may have something to do.
//!
//! A process may have hundreds of peers of which few do anything at a time. So whoever touches a
//! connection puts it on a list, and a poll goes through that list alone.
//!
//! # Invariants
//! - A connection with something to send or to read is on the list: it got that by a mutable
//!   reference, which is given by way of the list.

use super::connection::Connection;

#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Vec<Connection>,
    /// Places of those that may have something to do, each once.
    busy: Vec<usize>,
    /// By place: whether it is on the list.
    is_busy: Vec<bool>,
}

impl Connections {
    pub(super) fn get(&self, index: usize) -> Option<&Connection> {
        self.all.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Connection> {
        let connection = self.all.get_mut(index)?;
        if !std::mem::replace(self.is_busy.get_mut(index)?, true) {
            self.busy.push(index);
        }
        Some(connection)
    }

    /// All of them, whatever they do.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Connection> {
        self.all.iter()
    }

    /// All of them, to be changed.
    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Connection> {
        self.busy = (0..self.all.len()).collect();
        self.is_busy.fill(true);
        self.all.iter_mut()
    }

    /// Puts a connection into a place that is free, or behind all others.
    pub(super) fn put(&mut self, index: usize, connection: Connection) {
        match self.get_mut(index) {
            Some(place) => *place = connection,
            None => {
                self.busy.push(self.all.len());
                self.is_busy.push(true);
                self.all.push(connection);
            }
        }
    }

    /// Those that may have something to do.
    pub(super) fn busy(&self) -> impl Iterator<Item = &Connection> {
        self.busy.iter().filter_map(|index| self.all.get(*index))
    }

    /// Calls for each of them.
    pub(super) fn for_each_busy(&mut self, mut work: impl FnMut(&mut Connection)) {
        for index in &self.busy {
            if let Some(connection) = self.all.get_mut(*index) {
                work(connection);
            }
        }
    }

    /// Takes those off the list that have nothing to do.
    pub(super) fn rest(&mut self) {
        let Self { all, busy, is_busy } = self;
        busy.retain(|index| {
            let has_work = all
                .get(*index)
                .is_some_and(|connection| connection.is_pending() || connection.is_readable());
            if let Some(is_busy) = is_busy.get_mut(*index) {
                *is_busy = has_work;
            }
            has_work
        });
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
