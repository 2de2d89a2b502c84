//! One member of a large view in which nothing changes, over real rows, used to measure the cost of
//! a check of the view.

#![allow(dead_code, reason = "the test and the bench each use their own part")]

use std::cell::Cell;

use tramontane_core::ids::{Frontier, NodeId, Rank, SubgroupId, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup, ViewColumn};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Misbehaved;
use tramontane_core::view::{
    Cause, Host, NextView, PeerState, RowTable, Status, Table, ViewChange, ViewOptions, ViewState,
};

/// A host without traffic.
struct Still;

impl Host for Still {
    fn received(&self, _: SubgroupId) -> Frontier {
        Frontier::ZERO
    }
    fn delivered(&self, _: SubgroupId) -> Frontier {
        Frontier::ZERO
    }
    fn wedge(&mut self) {}
    fn prepare(&mut self, _: NextView<'_>) -> bool {
        true
    }
    fn deliver_to(&mut self, _: SubgroupId, _: Frontier) -> Result<bool, Misbehaved> {
        Ok(true)
    }
    fn cut(&mut self, _: Rank, _: Cause) {}
}

/// Counts the loaded cells.
struct CountedLoads<'t, T> {
    table: &'t mut T,
    loads: &'t Cell<u64>,
}

impl<T: Table> Table for CountedLoads<'_, T> {
    fn load(&self, owner: Rank, column: ViewColumn) -> u64 {
        self.loads.set(self.loads.get().saturating_add(1));
        self.table.load(owner, column)
    }
    fn publish(&mut self, column: ViewColumn, value: u64) {
        self.table.publish(column, value);
    }
}

/// Runs `body` with a closure that makes the member with rank `own` check its view once and returns
/// the number of cells that it loaded. All subgroups of the view contain all members.
pub fn with_view(
    own: Rank,
    (members, subgroups): (u16, usize),
    body: impl FnOnce(&mut dyn FnMut() -> u64),
) {
    let ids: Vec<NodeId> = (0..members).map(|id| NodeId(u32::from(id))).collect();
    let ranks: Vec<Rank> = (0..members).map(Rank).collect();
    let subgroup = Subgroup {
        members: &ranks,
        senders: &ranks,
        window: 1,
        message_max: 4,
        delivery: Delivery::Ordered,
    };
    let subgroups = vec![subgroup; subgroups];
    let layout =
        Layout::with_views(Group { members: &ids, subgroups: &subgroups }).expect("a good group");
    let memory: Vec<Vec<Line>> = ranks
        .iter()
        .map(|rank| (0..layout.row_bytes(*rank) / 64).map(|_| Line::new()).collect())
        .collect();
    let rows: Vec<Row<'_>> = memory.iter().map(|lines| Row::from_lines(lines)).collect();
    let options = ViewOptions { members_max: ids.len(), ..ViewOptions::default() };
    let mut state = ViewState::new(ViewId(1), own, options);
    let mut peers = vec![PeerState::default(); ids.len()];
    let mut next = ids.clone();
    let row = RowWriter::from_lines(&memory[own.index()]);
    let mut table = RowTable::new(&layout, own, &rows, row);
    let loads = Cell::new(0);
    body(&mut || {
        loads.set(0);
        let mut change =
            ViewChange::new(&layout, &mut state, &mut peers, &mut next).expect("state that fits");
        let mut counted = CountedLoads { table: &mut table, loads: &loads };
        assert_eq!(change.step(Time(1), &mut counted, &mut Still), Status::Steady);
        loads.get()
    });
}
