//! What `open` refuses: memory that is not the view's, and memory that was used.

use tramontane_core::fabric::{ErrorKind, Fabric, FabricError, ViewMemory};
use tramontane_core::ids::Rank;
use tramontane_core::memory::{Line, Row, RowWriter};

use super::report::{Breach, Finding, Outcome, clauses, ensure};
use super::scene::{A, B, C, ensure_way, everyone, open_all, wait};
use super::testbed::{Bench, VIEW};

clauses! { pub(super) Bench
    /// A view is not opened on memory that is not its own, wholly or in part: that is WrongMemory,
    /// and does not keep it from being opened rightly.
    "other-memory-refused", "Fabric::open; HostFabric::rows; VIE-11" => other_memory_refused;
    /// Memory of a view that was retired is not used again: that is WrongMemory.
    "used-memory-refused", "Fabric::open; VIE-11" => used_memory_refused;
}

/// Rows of the sizes of a member's, in memory that its fabric has never seen.
fn strange_rows<T: Bench>(bench: &T, member: Rank) -> Vec<Box<[Line]>> {
    let lines = |owner| {
        let bytes = bench.copy(member, owner).bytes();
        (0..bytes.div_ceil(size_of::<Line>())).map(|_| Line::new()).collect()
    };
    everyone().map(lines).collect()
}

/// Opens the view on memory of which some rows are strange; gives what the fabric says.
fn open_on<T: Bench>(
    bench: &mut T,
    strange: &[Box<[Line]>],
    is_strange: impl Fn(Rank) -> bool,
) -> Result<(), ErrorKind> {
    let members = bench.members();
    // What the fabric sees is its own memory still, as long as the bench is there: it is not
    // touched through this, and a fabric that takes it has broken the clause.
    let row = |rank: Rank| {
        let own = bench.copy(A, rank);
        if is_strange(rank) {
            Row::from_lines(&strange[rank.index()])
        } else {
            // SAFETY: the same memory, which the bench keeps; it is looked at in this call alone.
            unsafe { Row::from_raw(own.base(), own.bytes()) }
        }
    };
    let rows: Vec<Row<'_>> = everyone().map(row).collect();
    // SAFETY: as above; the own row is written through core's types.
    let row = unsafe { RowWriter::from_raw(rows[A.index()].base(), rows[A.index()].bytes()) };
    let memory = ViewMemory { own: A, members: &members, row, rows: &rows };
    bench.fabric(A).open(VIEW, &memory).map_err(|error| error.kind())
}

fn other_memory_refused<T: Bench>(bench: &mut T) -> Outcome {
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
            "an open where {what} other memory gives {opened:?}, not WrongMemory"
        );
        ensure!(!bench.fabric(A).ready(VIEW, B), "a view that was not opened has a peer");
    }
    open_all(bench)?;
    ensure_way(bench, (A, B), 5)?;
    ensure_way(bench, (B, A), 6)?;
    Ok(Finding::Holds)
}

fn used_memory_refused<T: Bench>(bench: &mut T) -> Outcome {
    open_all(bench)?;
    ensure_way(bench, (A, B), 5)?;
    let ended = wait(bench, |bench| {
        let mut is_over = true;
        for member in everyone() {
            is_over &= bench.fabric(member).retire(VIEW);
        }
        Ok(is_over)
    })?;
    ensure!(ended, "a view that nobody uses is never retired");
    let again = bench.open(A);
    ensure!(
        again == Err(ErrorKind::WrongMemory),
        "an open on memory of a view that was retired gives {again:?}, not WrongMemory"
    );
    let result = bench.fabric(A).post(VIEW, B, &[super::scene::guard(8, 8)], None);
    let kind = result.map_err(|error| error.kind());
    if kind != Err(ErrorKind::Other) {
        return Err(Breach(format!("a post in a view that was retired gives {kind:?}, not Other")));
    }
    Ok(Finding::Holds)
}
