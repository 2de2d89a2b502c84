//! The connections of a member, and a list of those that may have work.
//!
//! A process may have hundreds of peers, few of which are active at a time. So every access to a
//! connection puts it on a list, and a poll goes only through that list.
//!
//! # Invariants
//! - A connection with something to send or read is on the list, because that state was set through
//!   a mutable reference, and the list is the only way to obtain one.

use super::connection::Connection;

#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Vec<Connection>,
    /// The indices of the connections that may have work, each listed once.
    busy: Vec<usize>,
    /// For each connection, by index, whether it is on the list.
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

    /// Returns all connections, busy or not.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Connection> {
        self.all.iter()
    }

    /// Returns all connections mutably.
    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Connection> {
        self.busy = (0..self.all.len()).collect();
        self.is_busy.fill(true);
        self.all.iter_mut()
    }

    /// Puts a connection at an index, which must be free or the next one.
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

    /// Returns the connections that may have work.
    pub(super) fn busy(&self) -> impl Iterator<Item = &Connection> {
        self.busy.iter().filter_map(|index| self.all.get(*index))
    }

    /// Calls `work` for each connection that may have work.
    pub(super) fn for_each_busy(&mut self, mut work: impl FnMut(&mut Connection)) {
        for index in &self.busy {
            if let Some(connection) = self.all.get_mut(*index) {
                work(connection);
            }
        }
    }

    /// Removes the connections without work from the list.
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
