//! The memory of a partition: static, and lent to one view at a time.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::fabric::Rows;
use crate::group::{LINES, Members, SIZES, WhichPartition};
use tramontane_core::memory::{Row, RowWriter};
use tramontane_core::node_storage;
use tramontane_core::storage::RowStorage;
#[cfg(feature = "views")]
use tramontane_core::{layout::JOINS_MAX, storage::ViewStorage};

/// The memory that a member of a view borrows, in addition to rows.
#[derive(Debug)]
pub struct StateMemory {
    /// Memory of the node.
    pub node: node_storage!(SIZES),
    /// Memory of the view protocol.
    #[cfg(feature = "views")]
    pub views: ViewStorage<2, { 2 + JOINS_MAX }>,
}

/// All memory of a partition, lent to each of its incarnations: a `static`.
#[derive(Debug)]
pub struct PartitionStorage {
    /// Rows of both partitions: one is the local row, and the other is the copy of the partner's.
    rows: [RowStorage<LINES>; 2],
    is_lent: AtomicBool,
    state: UnsafeCell<StateMemory>,
}

// SAFETY: the state is reached only through `hold`, which lends it to one view at a time.
unsafe impl Sync for PartitionStorage {}

impl PartitionStorage {
    /// Creates fresh memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rows: [const { RowStorage::new() }; 2],
            is_lent: AtomicBool::new(false),
            state: UnsafeCell::new(StateMemory {
                node: <node_storage!(SIZES)>::new(),
                #[cfg(feature = "views")]
                views: ViewStorage::new(),
            }),
        }
    }

    /// Returns the rows in an order that contains the list of every view as a part: see `listed`.
    /// The caller keeps this value as long as the partition.
    #[must_use]
    pub const fn rows(&self) -> [Row<'_>; 3] {
        let [a, b] = &self.rows;
        [a.reader(), b.reader(), a.reader()]
    }

    /// Returns the rows as the fabric of a channel sees them.
    pub(crate) fn rows_of(&self, own: WhichPartition) -> Rows<'_> {
        let [a, b] = &self.rows;
        match own {
            WhichPartition::A => Rows { own: a.reader(), copy: b.writer() },
            WhichPartition::B => Rows { own: b.reader(), copy: a.writer() },
        }
    }

    /// Returns the local row of a channel, for writing.
    pub(crate) fn own_row(&self, own: WhichPartition) -> RowWriter<'_> {
        let [a, b] = &self.rows;
        match own {
            WhichPartition::A => a.writer(),
            WhichPartition::B => b.writer(),
        }
    }

    /// Lends the state for one view, and clears the rows. Returns `None` while it is lent.
    ///
    /// # Safety
    /// Nothing that borrows from the state, and no node over the rows, is used after the returned
    /// `Held` has been dropped.
    #[allow(clippy::mut_from_ref, reason = "`is_lent` sees to it that there is one")]
    pub(crate) unsafe fn hold(&self) -> Option<(Held<'_>, &mut StateMemory)> {
        if self.is_lent.swap(true, Ordering::Acquire) {
            return None;
        }
        for row in &self.rows {
            row.clear();
        }
        // SAFETY: nothing else uses the state, because every earlier holder has promised to stop
        // using it.
        Some((Held(&self.is_lent), unsafe { &mut *self.state.get() }))
    }
}

impl Default for PartitionStorage {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the rows of a view's members in rank order, from [`PartitionStorage::rows`].
pub(crate) fn listed<'m>(rows: &'m [Row<'m>; 3], members: Members) -> &'m [Row<'m>] {
    let [first, rest @ ..] = rows;
    let [from_a @ .., _] = rows;
    match members {
        Members::Both(WhichPartition::A) => from_a,
        Members::Both(WhichPartition::B) => rest,
        Members::Alone(WhichPartition::A) => core::slice::from_ref(first),
        Members::Alone(WhichPartition::B) => rest.get(..1).unwrap_or_default(),
    }
}

/// The right to use the memory, which is lent as long as this value exists.
#[derive(Debug)]
pub(crate) struct Held<'s>(&'s AtomicBool);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
