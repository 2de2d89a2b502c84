//! Cells of the view protocol with checks: their values in 48 bits.
//!
//! A word of suspicions has 64 flags and takes two cells. Each member adds one flag at a time, so a
//! reader of both cells sees the state either before or after a change of one of them. All other
//! cells omit bits that are zero in every view.
//!
//! Requirement: FLT-2.

use crate::check::SEALED_MAX;
use crate::layout::ViewColumn;

/// Number of flags in one of a word's two cells.
const HALF: u32 = 32;

/// Packs a column's value for its cell.
pub(super) fn pack(column: ViewColumn, value: u64) -> u64 {
    match column {
        // Promise and ballot, or decision and ballot; then the count, without the 16 zero bits
        // between them.
        ViewColumn::Stance | ViewColumn::Committed => value >> HALF << 16 | value & 0xffff,
        // 13 bits for the ballot, 3 bits for the kind, and the member or node.
        ViewColumn::Entry(_) => value >> 48 << 35 | value & 0x7_ffff_ffff,
        ViewColumn::Heartbeat
        | ViewColumn::Leaving
        | ViewColumn::JoinRequest
        | ViewColumn::Installed
        | ViewColumn::Suspicions(_)
        | ViewColumn::Wedged(_)
        | ViewColumn::Trim(_) => value,
    }
}

/// Unpacks a column's value from its cell.
pub(super) fn unpack(column: ViewColumn, packed: u64) -> u64 {
    match column {
        ViewColumn::Stance | ViewColumn::Committed => packed >> 16 << HALF | packed & 0xffff,
        ViewColumn::Entry(_) => packed >> 35 << 48 | packed & 0x7_ffff_ffff,
        // No survivor.
        ViewColumn::Trim(_) if packed == SEALED_MAX => u64::MAX,
        ViewColumn::Heartbeat
        | ViewColumn::Leaving
        | ViewColumn::JoinRequest
        | ViewColumn::Installed
        | ViewColumn::Suspicions(_)
        | ViewColumn::Wedged(_)
        | ViewColumn::Trim(_) => packed,
    }
}

/// Returns the two halves of a word of suspicions.
pub(super) const fn halves(word: u64) -> [u64; 2] {
    [word & 0xffff_ffff, word >> HALF]
}

/// Joins two halves to form a word.
pub(super) const fn joined([low, high]: [u64; 2]) -> u64 {
    low | high << HALF
}

/// Returns the value for a cell that fails its check. No step uses such a cell unless it changed in
/// the middle of the step. The value then means a cell that has not been written yet, or one that
/// no correct member publishes, so the step takes back nothing that was promised.
pub(super) const fn unreadable(column: ViewColumn) -> u64 {
    match column {
        ViewColumn::Stance | ViewColumn::Suspicions(_) => u64::MAX,
        ViewColumn::Heartbeat
        | ViewColumn::Leaving
        | ViewColumn::JoinRequest
        | ViewColumn::Committed
        | ViewColumn::Installed
        | ViewColumn::Entry(_)
        | ViewColumn::Wedged(_)
        | ViewColumn::Trim(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Checks;
    use crate::ids::{NodeId, Rank, SubgroupId};
    use crate::layout::MEMBERS_MAX;
    use crate::view::cells::REQUESTS_MAX;
    use crate::view::cells::{Accepted, Ballot, Change, Committed, JoinRequest, Stance};

    fn survives(column: ViewColumn, value: u64) {
        let packed = pack(column, value);
        let cell = Checks::On.unseal(Checks::On.seal(packed)).expect("sealed");
        assert_eq!(unpack(column, cell), value, "{column:?}: {value:x}");
    }

    #[test]
    fn largest_view_values_fit_in_checked_cells() {
        let last = Rank(u16::try_from(MEMBERS_MAX - 1).expect("small"));
        let accepted = Accepted { ballot: Ballot::of(last), count: u16::MAX };
        survives(ViewColumn::Stance, Stance { promise: last, accepted }.encode());
        survives(ViewColumn::Committed, Committed { decided: true, accepted }.encode());
        survives(ViewColumn::Committed, Committed { decided: false, accepted }.encode());
        let node = NodeId(u32::MAX);
        for change in [
            Change::Remove(last),
            Change::Leave(last),
            Change::Join(node),
            Change::Withdraw(node),
            Change::Seal,
        ] {
            survives(ViewColumn::Entry(3), change.encode(Ballot::of(last)));
        }
        let request = JoinRequest { sequence: REQUESTS_MAX, withdrawn: true, node };
        survives(ViewColumn::JoinRequest, request.encode());
        for column in [ViewColumn::Wedged(SubgroupId(1)), ViewColumn::Trim(SubgroupId(1))] {
            survives(column, (SEALED_MAX >> 2) + 1);
        }
        survives(ViewColumn::Trim(SubgroupId(1)), u64::MAX);
        for word in [0, 1, 1 << 31, 1 << 32, u64::MAX] {
            assert_eq!(joined(halves(word)), word);
        }
    }
}
