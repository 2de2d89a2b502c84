//! Full queues: a list is refused as a whole, succeeds when it is retried, and delays no other
//! peer.

use tramontane_core::fabric::{ErrorKind, Promises, Write};
use tramontane_core::ids::Rank;

use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::{
    A, B, C, ensure_way, guard, open_all, post, promises, read_bytes, store, try_post,
};
use crate::testbed::Bench;

clauses! { pub(super) Bench
    /// If a list finds the queue full, none of its writes lands, even if there was room for some of
    /// them.
    "queue-full-refused-whole", "Fabric::post (all of the list or nothing)" => refused_whole;
    /// A post that found the queue full succeeds later, without changes.
    "queue-full-passes", "ErrorKind::QueueFull; DESIGN, The seam; HAL-2" => passes;
    /// A full queue to one peer delays only that peer.
    "queue-full-alone", "DESIGN, The seam; HAL-2" => alone;
}

/// More lists than any queue can hold.
const LISTS_MAX: u64 = 20_000;

const NEVER_FULL: Finding =
    Finding::NotApplicable("20000 lists were accepted while no peer received any");

/// Three cells on three lines. Usual queue depths are not multiples of three, so the last list fits
/// only partly.
const CELLS: [usize; 3] = [512, 1024, 4096];

fn list() -> [Write; 3] {
    CELLS.map(|offset| guard(offset, 8))
}

fn set(bench: &impl Bench, member: Rank, value: u64) {
    for offset in CELLS {
        store(bench, member, offset, &value.to_ne_bytes());
    }
}

fn see(bench: &impl Bench, holder: Rank, owner: Rank) -> [u64; 3] {
    let copy = bench.copy(holder, owner);
    CELLS.map(|offset| copy.cell(offset).map_or(u64::MAX, |cell| cell.load()))
}

/// Posts lists from A to B, each with the next number, until the queue is full. Returns the number
/// that was refused, which A's row then contains, or `None` if the queue never fills.
fn crowd<T: Bench>(bench: &mut T) -> Result<Option<u64>, Breach> {
    for value in 1..=LISTS_MAX {
        set(bench, A, value);
        match try_post(bench, (A, B), &list(), None) {
            Ok(()) => {}
            Err(ErrorKind::QueueFull) => return Ok(Some(value)),
            Err(kind) => {
                return Err(Breach(format!(
                    "list {value}, with three guards, was refused: {kind}"
                )));
            }
        }
    }
    Ok(None)
}

fn refused_whole<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let Some(refused) = crowd(bench)? else { return Ok(NEVER_FULL) };
    ensure!(refused > 1, "the queue is full before the first post");
    let again = try_post(bench, (A, B), &list(), None);
    ensure!(
        again == Err(ErrorKind::QueueFull),
        "a second attempt without any delay returns {again:?}"
    );
    bench.settle();
    let seen = see(bench, B, A);
    ensure!(
        seen.iter().all(|value| *value != refused),
        "list {refused} was refused, but {seen:?} landed"
    );
    if promises(bench, Promises::WRITE_ORDER) {
        ensure!(
            seen == [refused - 1; 3],
            "list {} was the last accepted one, but {seen:?} landed",
            refused - 1
        );
    }
    Ok(Finding::Holds)
}

fn passes<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    for round in 0..3 {
        let Some(refused) = crowd(bench)? else { return Ok(NEVER_FULL) };
        bench.settle();
        post(bench, (A, B), &list(), None)?;
        bench.settle();
        let seen = see(bench, B, A);
        ensure!(
            seen == [refused; 3],
            "list {refused} was posted again in round {round}, but {seen:?} landed"
        );
    }
    Ok(Finding::Holds)
}

fn alone<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    if crowd(bench)?.is_none() {
        return Ok(NEVER_FULL);
    }
    store(bench, A, 64, &[9; 8]);
    store(bench, B, 64, &[9; 8]);
    store(bench, C, 64, &[9; 8]);
    for (from, to) in [(A, C), (B, A), (C, A), (C, B)] {
        let result = try_post(bench, (from, to), &[guard(64, 8)], None);
        ensure!(
            result.is_ok(),
            "while the queue from {A} to {B} is full, a post from {from} to {to} returns {result:?}"
        );
    }
    bench.settle();
    for (from, to) in [(A, C), (B, A), (C, A), (C, B)] {
        let seen = read_bytes(&bench.copy(to, from), 64, 8);
        ensure!(
            seen == [9; 8],
            "while another queue is full, a write from {from} to {to} does not land: {seen:?}"
        );
    }
    ensure_way(bench, (A, B), 3)?;
    Ok(Finding::Holds)
}
