//! Writes that a target's device has acknowledged but has not placed in memory yet: they complete
//! before they are visible.
//!
//! Writes to one peer are placed in their order, as every fabric of TRAM promises, but the cells of
//! one write in any order. A write that has not been placed when its right is revoked is lost,
//! although it has completed. Reads do not wait for such writes.

use std::collections::VecDeque;
use std::rc::Rc;

use tramontane_core::fabric::Region;
use tramontane_core::memory::RowWriter;

use super::{NetworkView, RowPair, TestNetwork};

/// The length of the pieces that are placed in any order, in bytes.
const CELL: usize = 8;

/// One write that has been acknowledged.
pub(super) struct Placing {
    pub(super) region: Region,
    offset: usize,
    bytes: Vec<u8>,
    /// Cells that have not been placed yet.
    left: Vec<usize>,
}

impl Placing {
    pub(super) fn new(region: Region, offset: usize, bytes: Vec<u8>) -> Self {
        let left = (0..bytes.len().div_ceil(CELL)).collect();
        Self { region, offset, bytes, left }
    }
}

impl NetworkView {
    pub(super) fn is_idle(&self, end: usize) -> bool {
        self.flights[end].is_empty() && self.placing[end].is_empty()
    }
}

impl TestNetwork {
    /// Decides whether a link places something next, rather than moves its next flight.
    pub(super) fn places_next(&mut self, id: usize, end: usize) -> bool {
        let Some(view) = &self.views[id] else { return false };
        match (view.placing[end].is_empty(), view.flights[end].is_empty()) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => self.random.chance(self.places_percent),
        }
    }

    /// Places some cells of the first write that has been acknowledged.
    pub(super) fn place(&mut self, id: usize, end: usize) {
        let Some(view) = self.views[id].as_mut() else { return };
        let target = view.ends[1 - end].process;
        let Some(first) = view.placing[end].front_mut() else { return };
        let into = if first.region == Region::ROW {
            RowWriter::from_lines(&view.ends[1 - end].rows.copy)
        } else {
            RowWriter::from_lines(&self.processes[target].log)
        };
        let count = if self.lands_whole { usize::MAX } else { 1 << self.random.below(7) };
        for _ in 0..count.min(first.left.len()) {
            let at = CELL * first.left.swap_remove(self.random.below(first.left.len()));
            let end = first.bytes.len().min(at + CELL);
            into.apply(first.offset + at, &first.bytes[at..end]).expect("posted in range");
        }
        if first.left.is_empty() {
            view.placing[end].pop_front();
        }
    }

    /// Discards what has not been placed in a process's log when it revokes a right.
    pub(super) fn discard(&mut self, id: usize, owner: usize) {
        let Some(view) = self.views.get_mut(id).and_then(Option::as_mut) else { return };
        let writer = usize::from(view.ends[0].process == owner);
        let before = view.placing[writer].len();
        view.placing[writer].retain(|placing| placing.region == Region::ROW);
        self.discarded += (before - view.placing[writer].len()) as u64;
    }

    /// Closes a process's end of a view, which it knows by its rows: what its device has not placed
    /// is lost.
    pub fn close(&mut self, rows: &Rc<RowPair>) {
        for view in self.views.iter_mut().flatten() {
            for end in 0..2 {
                if Rc::ptr_eq(&view.ends[end].rows, rows) {
                    self.discarded += view.placing[1 - end].len() as u64;
                    view.placing[1 - end].clear();
                }
            }
        }
    }

    /// Ends a crashed process's part in a view. What its peer's device has acknowledged may still
    /// be placed.
    pub(super) fn end_placing(&mut self, id: usize, crashed: usize) {
        let is_kept = self.places_percent > 0 && self.random.chance(50);
        let Some(view) = self.views[id].as_mut() else { return };
        view.placing[1 - crashed] = VecDeque::new();
        if !is_kept {
            view.placing[crashed] = VecDeque::new();
        }
    }
}
