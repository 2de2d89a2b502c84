//! Helpers of all clauses: named members, byte patterns, and the usual first steps.

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, FabricError, Kind, Promises, Token, Write,
};
use tramontane_core::ids::Rank;
use tramontane_core::memory::Row;

use crate::report::{Breach, ensure};
use crate::testbed::{Bench, MEMBERS, VIEW};

/// The members of every bench.
pub(super) const A: Rank = Rank(0);
pub(super) const B: Rank = Rank(1);
pub(super) const C: Rank = Rank(2);

/// The reason why a clause about writes that must not land can test little if memory is shared.
pub(super) const SHARED_ROWS: &str =
    "the peers' rows are the memory itself, so there is no landing to observe";

/// Number of attempts after which an expected condition counts as never happening.
const PATIENCE: u32 = 200_000;

/// All members.
pub(super) fn everyone() -> impl Iterator<Item = Rank> {
    (0..MEMBERS).map(Rank)
}

pub(super) fn capabilities(bench: &mut impl Bench) -> Capabilities {
    bench.fabric(A).capabilities()
}

pub(super) fn promises(bench: &mut impl Bench, promise: Promises) -> bool {
    capabilities(bench).promises.contains(promise)
}

/// Opens the view at a member.
pub(super) fn open(bench: &mut impl Bench, member: Rank) -> Result<(), Breach> {
    bench.open(member).map_err(|kind| Breach(format!("{member} cannot open the view: {kind}")))
}

/// Opens the view on all members, waits until all are ready, and takes the ready events.
pub(super) fn open_all(bench: &mut impl Bench) -> Result<(), Breach> {
    everyone().try_for_each(|member| open(bench, member))?;
    for _ in 0..10 {
        bench.settle();
    }
    for member in everyone() {
        for peer in everyone().filter(|peer| *peer != member) {
            let ready = bench.fabric(member).ready(VIEW, peer);
            ensure!(ready, "all members opened the view, but {peer} is never ready for {member}");
        }
        drain(bench, member)?;
    }
    Ok(())
}

/// Takes the events that the fabric has now.
pub(super) fn drain(bench: &mut impl Bench, member: Rank) -> Result<Vec<Event>, Breach> {
    let mut events = Vec::new();
    while let Some(event) = bench.fabric(member).poll() {
        events.push(event);
        ensure!(events.len() < 100_000, "polling {member} never ends: {event:?}");
    }
    Ok(events)
}

/// Posts a list, and returns the kind of error.
pub(super) fn try_post(
    bench: &mut impl Bench,
    (from, to): (Rank, Rank),
    writes: &[Write],
    token: Option<Token>,
) -> Result<(), ErrorKind> {
    bench.fabric(from).post(VIEW, to, writes, token).map_err(|error| error.kind())
}

/// Posts a list that must succeed eventually.
pub(super) fn post(
    bench: &mut impl Bench,
    (from, to): (Rank, Rank),
    writes: &[Write],
    token: Option<Token>,
) -> Result<(), Breach> {
    let mut result = Err(ErrorKind::QueueFull);
    for _ in 0..10 {
        result = try_post(bench, (from, to), writes, token);
        if result != Err(ErrorKind::QueueFull) {
            break;
        }
        bench.settle();
    }
    result.map_err(|kind| {
        Breach(format!("a post of {} writes from {from} to {to} was refused: {kind}", writes.len()))
    })
}

/// Checks that a post was refused for good.
pub(super) fn ensure_refused(result: Result<(), ErrorKind>, what: &str) -> Result<(), Breach> {
    ensure!(result.is_err(), "{what} is accepted");
    ensure!(result != Err(ErrorKind::QueueFull), "{what} is refused as if a retry could succeed");
    Ok(())
}

/// Checks that a post was refused as out of range.
pub(super) fn ensure_out_of_range(result: Result<(), ErrorKind>, what: &str) -> Result<(), Breach> {
    ensure!(
        result == Err(ErrorKind::OutOfRange),
        "{what} returns {result:?} instead of OutOfRange"
    );
    Ok(())
}

/// Sends a cell and checks that it arrives, which proves that the link between two members works.
pub(super) fn ensure_way(
    bench: &mut impl Bench,
    (from, to): (Rank, Rank),
    value: u8,
) -> Result<(), Breach> {
    fill(bench, from, 8, 8, value);
    post(bench, (from, to), &[guard(8, 8)], None)?;
    bench.settle();
    let seen = read_bytes(&bench.copy(to, from), 8, 8);
    ensure!(seen == [value; 8], "a write from {from} to {to} does not land: {seen:?}");
    Ok(())
}

/// Waits for a condition in small steps. Returns false if it never holds.
pub(super) fn wait<T: Bench>(
    bench: &mut T,
    mut done: impl FnMut(&mut T) -> Result<bool, Breach>,
) -> Result<bool, Breach> {
    for _ in 0..PATIENCE {
        if done(bench)? {
            return Ok(true);
        }
        bench.pass();
    }
    Ok(false)
}

/// Returns a content write of the local row.
pub(super) fn content(offset: usize, length: usize) -> Write {
    Write::of_row(offset, length, Kind::Content)
}

/// Returns a guard write of the local row.
pub(super) fn guard(offset: usize, length: usize) -> Write {
    Write::of_row(offset, length, Kind::Guard)
}

/// Writes bytes into a member's own row. The range is always valid, because clauses stay within the
/// row.
pub(super) fn store(bench: &impl Bench, member: Rank, offset: usize, bytes: &[u8]) {
    let stored = bench.row(member).apply(offset, bytes);
    debug_assert!(stored.is_ok(), "a clause writes outside the row");
}

/// Fills a range of a member's own row.
pub(super) fn fill(bench: &impl Bench, member: Rank, offset: usize, length: usize, with: u8) {
    store(bench, member, offset, &vec![with; length]);
}

/// Fills a member's whole row with bytes that are never zero and differ from their neighbours;
/// returns them.
pub(super) fn fill_with_pattern(bench: &impl Bench, member: Rank) -> Vec<u8> {
    let salt = usize::from(member.0) * 83;
    let byte =
        |at: usize| u8::try_from((at * 7 + at / 251 + salt) % 255).map_or(1, |byte| byte + 1);
    let bytes: Vec<u8> = (0..bench.row(member).bytes()).map(byte).collect();
    store(bench, member, 0, &bytes);
    bytes
}

/// Returns the current bytes of a range of a row.
pub(super) fn read_bytes(row: &Row<'_>, offset: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let read = row.read(offset, &mut bytes);
    debug_assert!(read.is_ok(), "a clause reads outside the row");
    bytes
}

/// Returns the current bytes of a whole row.
pub(super) fn snapshot(row: &Row<'_>) -> Vec<u8> {
    read_bytes(row, 0, row.bytes())
}

/// Checks that two rows are equal, and names the first byte that differs.
pub(super) fn ensure_same(seen: &[u8], expected: &[u8], what: &str) -> Result<(), Breach> {
    let differs = seen.iter().zip(expected).position(|(seen, expected)| seen != expected);
    if let Some(at) = differs {
        return Err(Breach(format!(
            "{what}: byte {at} is {} instead of {}",
            seen[at], expected[at]
        )));
    }
    ensure!(
        seen.len() == expected.len(),
        "{what}: {} bytes instead of {}",
        seen.len(),
        expected.len()
    );
    Ok(())
}
