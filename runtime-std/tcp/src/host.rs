//! The host's half of the fabric: the memory of views, and sleep.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{HostFabric, ViewMemory, ViewPlan, ViewRows};
use tramontane_core::ids::ViewId;
use tramontane_core::memory::Row;

use super::fabric::Tcp;
use super::frame::Frame;
use super::memory::{MadeRows, NoRows, Rows};
use super::watch::Bell;

impl Tcp {
    /// Takes the memory with which a view is opened, if it was allocated for that view.
    pub(super) fn take_made(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Option<Rows> {
        let is_it = |rows: &Rows| {
            rows.view() == view
                && rows.own() == memory.own
                && rows.members() == memory.members
                && is_same(&rows.row().reader(), &memory.row.reader())
                && rows.rows().len() == memory.rows.len()
                && rows.rows().iter().zip(memory.rows).all(|(made, given)| is_same(made, given))
        };
        let found = |(place, made): (usize, &MadeRows)| Some((place, made.get().filter(is_it)?));
        let (place, rows) = self.made.iter().enumerate().find_map(found)?;
        self.made.swap_remove(place);
        Some(rows)
    }
}

/// Returns whether two rows are the same memory.
fn is_same(one: &Row<'_>, other: &Row<'_>) -> bool {
    (one.base(), one.bytes()) == (other.base(), other.bytes())
}

/// Becomes readable when a socket has data or the local bell has been rung. Intended for a caller
/// that also waits for other things.
impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

impl HostFabric for Tcp {
    type Bell = Bell;
    type Rows = Rows;
    type MemoryError = NoRows;

    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<Rows, NoRows> {
        let (view, rank) = (plan.view(), plan.own());
        if plan.members().get(rank.index()) != Some(&self.own) {
            return Err(NoRows::NotAMember { node: self.own, rank, view });
        }
        let rows = Rows::new(plan)?;
        self.has_made_views = true;
        self.made.retain(|made| made.get().is_some());
        self.made.push(rows.downgrade());
        Ok(rows)
    }

    fn local_bell(&self) -> Bell {
        self.watch.bell().clone()
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        let start = Instant::now();
        loop {
            // A member that was refused because of a full queue is woken once there is room, not
            // for each part that is sent.
            let left = if self.is_sendable() {
                Duration::ZERO
            } else {
                timeout.saturating_sub(start.elapsed())
            };
            if self.look(left) | self.flush() || self.is_sendable() {
                return true;
            }
            if start.elapsed() >= timeout {
                return false;
            }
        }
    }

    /// The kernel wakes a sleeper as soon as something arrives. Yielding and checking again would
    /// cost whole time slices.
    fn idle_time(&self) -> Duration {
        Duration::ZERO
    }

    fn check_peers(&mut self) -> bool {
        self.carry()
    }

    fn leave(&mut self) {
        for connection in self.connections.get_mut().iter_mut() {
            connection.farewell(Frame::Leave);
        }
    }
}
