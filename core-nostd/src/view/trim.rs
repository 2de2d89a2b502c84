//! The end of a view: the ragged trim, which is one position in each ordered subgroup, the minimum
//! of the survivors' final counts (VIE-6).
//!
//! The leader sets all trims at once and seals the list with them, so that they are agreed upon
//! together with the next view. If instead each subgroup's lowest member set its trim, two members
//! of a subgroup that suspect each other could each set a trim and deliver under it before the rest
//! of the view had decided between them.
//!
//! Requirements: DUR-6, VIE-8.

use super::cells::Change;
use super::proposal::Unusable;
use super::state::{Cause, Status, ViewState, ViewStep};
use super::table::{Host, Table};
use super::wedge::{FRONTIER_MAX, ImpossibleCount, is_trimmed};
use crate::ids::{Frontier, Rank, SubgroupId};
use crate::layout::{Layout, Subgroup, ViewColumn};

/// Cell value of a subgroup without surviving members: its state is lost (VIE-10).
const NO_SURVIVOR: u64 = u64::MAX;

/// A member that has accepted but publishes no final count, or an impossible one.
struct ImpossibleCountOf(Rank);

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// Sets the trims and seals the local list, whose first `count` entries are committed: every
    /// unsuspected member has accepted them. Does not seal before this member's memory for the next
    /// view is ready and its promise durable. The list must be the list last read.
    pub(super) fn seal(&mut self, count: u16) {
        let mut id = SubgroupId::ZERO;
        // bound: the subgroups
        while let Some(subgroup) = self.layout.subgroup(id) {
            match self.trim_of(id, subgroup) {
                // The cell is not read before the seal. Until then it may grow as members are
                // removed.
                Ok(cell) if self.own(ViewColumn::Trim(id)) != cell => {
                    self.table.publish(ViewColumn::Trim(id), cell);
                }
                Ok(_) => {}
                // The list is not sealed: the trims are set again without that member.
                Err(ImpossibleCountOf(rank)) => return self.suspect(rank, Cause::Misbehaved),
            }
            id = id.next();
        }
        let accepted = self.own_stance().accepted;
        if !self.ready_to_echo(self.state.rank, accepted.ballot) {
            return;
        }
        self.table.publish(ViewColumn::Entry(count), Change::Seal.encode(accepted.ballot));
        self.publish_own(count.saturating_add(1));
    }

    /// Returns the cell of a subgroup's trim, from the final counts of its unsuspected members.
    /// Each count was published before its owner accepted anything. No count is below what has been
    /// delivered here, because its owner had published at least that much before.
    fn trim_of(&self, id: SubgroupId, subgroup: &Subgroup<'_>) -> Result<u64, ImpossibleCountOf> {
        if !is_trimmed(subgroup) {
            return Ok(1);
        }
        let least = if subgroup.has_member(self.state.rank) {
            self.host.delivered(id)
        } else {
            Frontier::ZERO
        };
        let mut trim = None;
        // bound: the members of the subgroup
        for rank in subgroup.members.iter().copied().filter(|rank| !self.suspects(*rank)) {
            let count = match self.final_count(rank, id) {
                Ok(Some(count)) if count >= least => count.0,
                Ok(_) | Err(ImpossibleCount) => return Err(ImpossibleCountOf(rank)),
            };
            trim = Some(trim.map_or(count, |trim: u64| trim.min(count)));
        }
        Ok(trim.map_or(NO_SURVIVOR, |trim| trim.saturating_add(1)))
    }

    /// Checks the trims of a sealed list. Each must be set. In this member's subgroups, none may be
    /// below what has been delivered here or above what has been received here.
    pub(super) fn check_trims(&self, owner: Rank) -> Result<(), Unusable> {
        let mut id = SubgroupId::ZERO;
        // bound: the subgroups
        while let Some(subgroup) = self.layout.subgroup(id) {
            self.check_trim(id, subgroup, self.table.load(owner, ViewColumn::Trim(id)))?;
            id = id.next();
        }
        Ok(())
    }

    fn check_trim(
        &self,
        id: SubgroupId,
        subgroup: &Subgroup<'_>,
        cell: u64,
    ) -> Result<(), Unusable> {
        let Some(trim) = cell.checked_sub(1) else { return Err(Unusable::Wrong) };
        if trim > FRONTIER_MAX && cell != NO_SURVIVOR {
            return Err(Unusable::Wrong);
        }
        if is_trimmed(subgroup) && subgroup.has_member(self.state.rank) {
            let (here, delivered) = (self.host.received(id), self.host.delivered(id));
            if cell == NO_SURVIVOR || trim > here.0 || trim < delivered.0 {
                return Err(Unusable::Wrong);
            }
        }
        Ok(())
    }

    pub(super) fn trims_agree_with(&self, owner: Rank) -> bool {
        let mut id = SubgroupId::ZERO;
        // bound: the subgroups
        while self.layout.subgroup(id).is_some() {
            if self.own(ViewColumn::Trim(id)) != self.table.load(owner, ViewColumn::Trim(id)) {
                return false;
            }
            id = id.next();
        }
        true
    }

    /// Copies the trims of a list that is being adopted. The copied values are the ones that were
    /// checked here.
    pub(super) fn copy_trims(&mut self, owner: Rank) -> Result<(), Unusable> {
        let mut id = SubgroupId::ZERO;
        // bound: the subgroups
        while let Some(subgroup) = self.layout.subgroup(id) {
            let cell = self.table.load(owner, ViewColumn::Trim(id));
            self.check_trim(id, subgroup, cell)?;
            if self.own(ViewColumn::Trim(id)) != cell {
                self.table.publish(ViewColumn::Trim(id), cell);
            }
            id = id.next();
        }
        Ok(())
    }

    /// Returns the trim that has been accepted here, or `None` if the subgroup has no trim or no
    /// survivor.
    pub(super) fn own_trim(&self, id: SubgroupId) -> Option<Frontier> {
        trim_in(self.table, self.layout, self.state.rank, id)
    }
}

impl ViewState {
    /// Returns the trim of a subgroup, as [`ViewChange::trim`](super::ViewChange::trim) does.
    pub(crate) fn trim(
        &self,
        table: &impl Table,
        layout: &Layout<'_>,
        subgroup: SubgroupId,
    ) -> Option<Frontier> {
        match self.status {
            Status::Decided | Status::Installed | Status::Left => {
                trim_in(table, layout, self.rank, subgroup)
            }
            Status::Steady | Status::Wedged | Status::Halted(_) => None,
        }
    }
}

/// Returns the trim of a subgroup in a member's row, or `None` if the subgroup has no trim or no
/// survivor.
pub(super) fn trim_in(
    table: &impl Table,
    layout: &Layout<'_>,
    owner: Rank,
    id: SubgroupId,
) -> Option<Frontier> {
    layout.subgroup(id).filter(|subgroup| is_trimmed(subgroup))?;
    let cell = table.load(owner, ViewColumn::Trim(id));
    if cell == NO_SURVIVOR { None } else { cell.checked_sub(1).map(Frontier) }
}
