//! Members that pass on a third member's messages (REL-1).

use std::time::Duration;

use tramontane_core::fabric::{Area, ErrorKind, Fabric as _, Kind, Region, ViewRows as _, Write};
use tramontane_core::ids::Rank;
use tramontane_core::layout::RelayedRing;
use tramontane_verbs::Limits;

use super::group::{GroupShape, VIEW};
use super::{A, B, OpenMember, content, drain, guard, members, wait_for};

const C: Rank = Rank(2);
const RING: usize = 4_096;
const RING_BYTES: usize = 8_192;
const COUNTER: usize = RING + RING_BYTES - 8;
const LONG: Duration = Duration::from_secs(30);

/// Returns a group in which B passes on A's ring to C.
fn shape(limits: Limits) -> GroupShape {
    let ring = RelayedRing { from: B, to: C, owner: A, offset: RING, bytes: RING_BYTES };
    GroupShape { relayed: vec![ring], limits, ..GroupShape::default() }
}

/// A write from the local copy of a member's row to the same place in the peer's copy.
fn copy(owner: Rank, offset: usize, length: usize, kind: Kind) -> Write {
    let area = Area { region: Region::copy_of(owner), offset };
    Write { source: area, target: area, length, kind }
}

fn post(member: &mut OpenMember, to: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
    member.fabric.post(VIEW, to, writes, None)
}

fn counter(member: &OpenMember) -> u64 {
    member.rows.rows()[0].cell(COUNTER).expect("in the row").load()
}

/// Fills the ring at A, and waits until its counter is at B.
fn fill(all: &mut [OpenMember]) {
    let row = all[0].rows.row();
    row.apply(RING, &[7; RING_BYTES - 8]).expect("in the row");
    row.cell(COUNTER).expect("a cell").publish(1);
    let list = [content(RING, RING_BYTES - 8), guard(COUNTER, 8)];
    post(&mut all[0], B, &list).expect("room");
    wait_for("the counter at B", LONG, || {
        all.iter_mut().for_each(|member| drop(drain(&mut member.fabric)));
        counter(&all[1]) == 1
    });
}

#[test]
fn copy_of_third_members_row_reaches_the_peer() {
    for order in [true, false] {
        let limits = Limits { write_order: Some(order), ..Limits::default() };
        let mut all = members(&shape(limits));
        fill(&mut all);
        // In one list with a write of B's own row.
        all[1].rows.row().cell(0).expect("a cell").publish(5);
        let list = [
            copy(A, RING, 4_096, Kind::Content),
            copy(A, RING + 4_096, RING_BYTES - 4_104, Kind::Content),
            copy(A, COUNTER, 8, Kind::Guard),
            guard(0, 8),
        ];
        post(&mut all[1], C, &list).expect("room");
        wait_for("the counter at C", LONG, || {
            all.iter_mut().for_each(|member| drop(drain(&mut member.fabric)));
            counter(&all[2]) == 1 && all[2].rows.rows()[1].cell(0).expect("a cell").load() == 5
        });
        let mut bytes = [0; RING_BYTES - 8];
        all[2].rows.rows()[0].read(RING, &mut bytes).expect("in the row");
        assert!(bytes.iter().all(|byte| *byte == 7), "by the device: {order}");
    }
}

#[test]
fn writes_outside_the_relayed_ring_are_refused() {
    for order in [true, false] {
        let limits = Limits { write_order: Some(order), ..Limits::default() };
        let mut all = members(&shape(limits));
        fill(&mut all);
        let wrong = [
            (1, C, copy(A, RING - 8, 8, Kind::Guard)),
            (1, C, copy(A, RING + RING_BYTES - 4, 8, Kind::Guard)),
            (1, C, copy(A, usize::MAX, 8, Kind::Guard)),
            (1, A, copy(A, RING, 8, Kind::Guard)),
            (1, C, copy(C, RING, 8, Kind::Guard)),
            (1, C, copy(Rank(9), RING, 8, Kind::Guard)),
            (2, B, copy(A, RING, 8, Kind::Guard)),
            (0, C, copy(B, RING, 8, Kind::Guard)),
        ];
        for (from, to, write) in wrong {
            let refused = post(&mut all[from], to, &[write]);
            assert_eq!(refused, Err(ErrorKind::OutOfRange), "{from} to {to}: {write:?}");
        }
        let moved = Write {
            target: Area { region: Region::copy_of(A), offset: RING + 8 },
            ..copy(A, RING, 8, Kind::Content)
        };
        assert_eq!(post(&mut all[1], C, &[moved]), Err(ErrorKind::OutOfRange));
        post(&mut all[1], C, &[copy(A, COUNTER, 8, Kind::Guard)]).expect("room");
        wait_for("the counter at C", LONG, || {
            all.iter_mut().for_each(|member| drop(drain(&mut member.fabric)));
            counter(&all[2]) == 1
        });
    }
}
