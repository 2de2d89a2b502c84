//! The memory that `open` must refuse: foreign memory, and memory that has already been used.

use tramontane_core::fabric::{ErrorKind, Fabric, FabricError, ViewMemory};
use tramontane_core::ids::Rank;
use tramontane_core::memory::{Line, Row, RowWriter};

use super::report::{Breach, ClauseResult, Finding, clauses, ensure};
use super::scene::{A, B, C, ensure_way, everyone, open_all, wait};
use super::testbed::{Bench, VIEW};

clauses! { pub(super) Bench
    /// A view cannot be opened on foreign memory, in whole or in part: that is WrongMemory, and
    /// does not prevent opening it correctly.
    "other-memory-refused", "Fabric::open; HostFabric::rows; VIE-11" => other_memory_refused;
    /// Memory of a retired view cannot be reused: that is WrongMemory.
    "used-memory-refused", "Fabric::open; VIE-11" => used_memory_refused;
}

/// Returns rows of the same sizes as a member's, in memory that its fabric has never seen.
fn strange_rows<T: Bench>(bench: &T, member: Rank) -> Vec<Box<[Line]>> {
    let lines = |owner| {
        let bytes = bench.copy(member, owner).bytes();
        (0..bytes.div_ceil(size_of::<Line>())).map(|_| Line::new()).collect()
    };
    everyone().map(lines).collect()
}

/// Opens the view on memory with some foreign rows; returns the fabric's answer.
fn open_on<T: Bench>(
    bench: &mut T,
    strange: &[Box<[Line]>],
    is_strange: impl Fn(Rank) -> bool,
) -> Result<(), ErrorKind> {
    let members = bench.members();
    // The row that the fabric sees is still its own memory while the bench exists. It is not
    // accessed through this value, and a fabric that accepts it has broken the clause.
    let row = |rank: Rank| {
        let own = bench.copy(A, rank);
        if is_strange(rank) {
            Row::from_lines(&strange[rank.index()])
        } else {
            // SAFETY: this is the same memory, which the bench keeps; it is used only during this
            // call.
            unsafe { Row::from_raw(own.base(), own.bytes()) }
        }
    };
    let rows: Vec<Row<'_>> = everyone().map(row).collect();
    // SAFETY: as above; the local row is written through core's types.
    let row = unsafe { RowWriter::from_raw(rows[A.index()].base(), rows[A.index()].bytes()) };
    let memory = ViewMemory { own: A, members: &members, row, rows: &rows };
    bench.fabric(A).open(VIEW, &memory).map_err(|error| error.kind())
}

fn other_memory_refused<T: Bench>(bench: &mut T) -> ClauseResult {
    let strange = strange_rows(bench, A);
    let cases = [
        ("all rows are", vec![A, B, C]),
        ("its own row is", vec![A]),
        ("a peer's row is", vec![C]),
    ];
    for (what, ranks) in cases {
        let is_strange = |rank| ranks.contains(&rank);
        let opened = open_on(bench, &strange, is_strange);
        ensure!(
            opened == Err(ErrorKind::WrongMemory),
            "an open where {what} foreign memory returns {opened:?} instead of WrongMemory"
        );
        ensure!(!bench.fabric(A).ready(VIEW, B), "a view that was not opened has a ready peer");
    }
    open_all(bench)?;
    ensure_way(bench, (A, B), 5)?;
    ensure_way(bench, (B, A), 6)?;
    Ok(Finding::Holds)
}

fn used_memory_refused<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    ensure_way(bench, (A, B), 5)?;
    let ended = wait(bench, |bench| {
        let mut is_over = true;
        for member in everyone() {
            is_over &= bench.fabric(member).retire(VIEW);
        }
        Ok(is_over)
    })?;
    ensure!(ended, "retiring an unused view never completes");
    let again = bench.open(A);
    ensure!(
        again == Err(ErrorKind::WrongMemory),
        "an open on memory of a retired view returns {again:?} instead of WrongMemory"
    );
    let result = bench.fabric(A).post(VIEW, B, &[super::scene::guard(8, 8)], None);
    let kind = result.map_err(|error| error.kind());
    if kind != Err(ErrorKind::Other) {
        return Err(Breach(format!("a post in a retired view returns {kind:?} instead of Other")));
    }
    Ok(Finding::Holds)
}
