//! Posts that must be refused, without any effect.

use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric, FabricError, Kind, Promises, Region, Token, Write,
};
use tramontane_core::ids::{Rank, ViewId};

use crate::report::{ClauseResult, Finding, clauses, ensure};
use crate::scene::{
    A, B, SHARED_ROWS, capabilities, content, drain, ensure_out_of_range, ensure_refused,
    ensure_same, ensure_way, fill_with_pattern, guard, open_all, promises, read_bytes, snapshot,
    try_post,
};
use crate::testbed::{Bench, VIEW};

clauses! { pub(super) Bench
    /// A list with more writes than the fabric's limit is OutOfRange, and none of it lands.
    "list-too-long", "Fabric::post" => list_too_long;
    /// A range that is not inside the row, at either end, is OutOfRange, and nothing lands.
    "range-outside-row", "Fabric::post" => range_outside_row;
    /// A write above the limits is OutOfRange, or arrives complete with the bytes that it had at
    /// the call.
    "write-too-large", "Capabilities::write_bytes_max, guard_bytes_max" => write_too_large;
    /// A post to oneself, to an unknown rank or in an unknown view is refused for good.
    "no-such-peer", "Fabric::post" => no_such_peer;
    /// One invalid write refuses its list: none of it lands, and its token never completes.
    "all-or-nothing", "Fabric::post; DESIGN, The seam" => all_or_nothing;
}

/// Checks that nothing has landed in B's copy of A's row, as far as this kind of fabric can show
/// it.
fn ensure_untouched<T: Bench>(bench: &mut T, what: &str) -> ClauseResult {
    bench.settle();
    if promises(bench, Promises::SHARED) {
        return Ok(Finding::InPart(SHARED_ROWS));
    }
    let copy = snapshot(&bench.copy(B, A));
    ensure_same(&copy, &vec![0; copy.len()], what)?;
    Ok(Finding::Holds)
}

fn list_too_long<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    fill_with_pattern(bench, A);
    let max = capabilities(bench).writes_max;
    if max > 100_000 {
        return Ok(Finding::NotApplicable("lists may be as long as memory allows"));
    }
    for length in [max + 1, 2 * max, 10 * max] {
        let writes: Vec<Write> = (0..length).map(|index| guard(index % 512 * 8, 8)).collect();
        let result = try_post(bench, (A, B), &writes, None);
        ensure_out_of_range(result, &format!("a list of {length} writes, with a limit of {max},"))?;
    }
    let finding = ensure_untouched(bench, "after lists that are too long")?;
    ensure_way(bench, (A, B), 5)?;
    Ok(finding)
}

fn range_outside_row<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let end = fill_with_pattern(bench, A).len();
    let bad = [
        (end - 7, 8),
        (end, 1),
        (end + 64, 8),
        (usize::MAX, 1),
        (usize::MAX - 3, 8),
        (0, end + 1),
        (8, usize::MAX),
    ];
    for (offset, length) in bad {
        for kind in [Kind::Content, Kind::Guard] {
            let inside = Area { region: Region::ROW, offset: 0 };
            let outside = Area { region: Region::ROW, offset };
            for (source, target) in [(outside, outside), (inside, outside), (outside, inside)] {
                if source == target && offset == 0 && length <= end {
                    continue;
                }
                let write = Write { source, target, length, kind };
                let what = format!(
                    "a {kind:?} write of {length} bytes from {} to {} in a row of {end} bytes",
                    source.offset, target.offset
                );
                ensure_out_of_range(try_post(bench, (A, B), &[write], None), &what)?;
            }
        }
    }
    let finding = ensure_untouched(bench, "after ranges outside the row")?;
    ensure_way(bench, (A, B), 5)?;
    Ok(finding)
}

fn write_too_large<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let limits = capabilities(bench);
    let row = fill_with_pattern(bench, A);
    let too_large = [
        (guard(0, limits.guard_bytes_max.saturating_add(1)), limits.guard_bytes_max),
        (content(0, limits.write_bytes_max.saturating_add(1)), limits.write_bytes_max),
    ];
    let mut asked = false;
    for (write, limit) in too_large.into_iter().filter(|(write, _)| write.length <= row.len()) {
        asked = true;
        let result = try_post(bench, (A, B), &[write], None);
        if result.is_err() {
            let what = format!(
                "a {:?} write of {} bytes, with a limit of {limit},",
                write.kind, write.length
            );
            ensure_out_of_range(result, &what)?;
            continue;
        }
        bench.settle();
        let seen = read_bytes(&bench.copy(B, A), 0, write.length);
        ensure_same(&seen, &row[..write.length], "an accepted write above the limit")?;
    }
    Ok(if asked {
        Finding::Holds
    } else {
        Finding::NotApplicable("all limits are above the size of the row")
    })
}

fn no_such_peer<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    for to in [A, Rank(3), Rank(9), Rank(u16::MAX)] {
        let result = try_post(bench, (A, to), &[guard(0, 8)], None);
        ensure_refused(result, &format!("a post from {A} to {to}, in a group of three,"))?;
        ensure!(to == A || !bench.fabric(A).ready(VIEW, to), "{to} does not exist, but is ready");
    }
    for view in [ViewId(0), ViewId(77), ViewId(u64::MAX)] {
        let result =
            bench.fabric(A).post(view, B, &[guard(0, 8)], None).map_err(|error| error.kind());
        ensure_refused(result, &format!("a post in view {view}, which is not open,"))?;
        ensure!(!bench.fabric(A).ready(view, B), "{B} is ready for view {view}, which is not open");
        // A wake for an unknown rank or view has no effect.
        bench.fabric(A).wake(view, B);
    }
    bench.fabric(A).wake(VIEW, Rank(9));
    ensure_way(bench, (A, B), 5)?;
    Ok(Finding::Holds)
}

fn all_or_nothing<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let end = fill_with_pattern(bench, A).len();
    let bad = content(end - 4, 8);
    let lists: [&[Write]; 4] = [
        &[content(0, 64), guard(64, 8), bad],
        &[bad, guard(128, 8)],
        &[content(256, 512), bad, guard(768, 8)],
        &[guard(1024, 8), guard(usize::MAX - 8, 16)],
    ];
    for (list, token) in lists.into_iter().zip(500..) {
        let result = try_post(bench, (A, B), list, Some(Token(token)));
        ensure_out_of_range(result, "a list with one bad write")?;
    }
    let finding = ensure_untouched(bench, "after lists with one bad write each")?;
    let completed: Vec<Event> =
        drain(bench, A)?.into_iter().filter(|event| matches!(event, Event::Completed(_))).collect();
    ensure!(completed.is_empty(), "refused lists complete: {completed:?}");
    // The writes before the invalid one are valid, and succeed without it.
    let result: Result<(), ErrorKind> = try_post(bench, (A, B), &lists[0][..2], None);
    ensure!(result.is_ok(), "the rest of a refused list without its bad write returns {result:?}");
    bench.settle();
    let expected = read_bytes(&bench.row(A).reader(), 0, 72);
    ensure_same(&read_bytes(&bench.copy(B, A), 0, 72), &expected, "the rest of a refused list")?;
    Ok(finding)
}
