//! Bytes land at their target and nowhere else.

use tramontane_core::fabric::{Area, Kind, Promises, Region, Write};
use tramontane_core::ids::Rank;

use crate::report::{Breach, ClauseResult, Finding, clauses};
use crate::scene::{
    A, B, C, SHARED_ROWS, capabilities, content, ensure_refused, ensure_same, everyone,
    fill_with_pattern, guard, open_all, post, promises, snapshot, try_post,
};
use crate::testbed::Bench;

clauses! { pub(super) Bench
    /// In a peer's copy only the posted ranges change, for every alignment, and nothing changes at
    /// any other peer.
    "write-lands-exactly", "Fabric: what every implementation keeps" => lands_exactly;
    /// A write whose source and target offsets differ is carried exactly or refused; a write to an
    /// unknown region is refused.
    "write-in-place",
        "Write; DESIGN, The seam (source and target are the same place for the table)" => in_place;
    /// Posts at the limits are accepted: a full list, a whole row, an empty list.
    "limits-are-taken", "Capabilities; Fabric::post" => limits_are_taken;
}

/// Ranges within and across the boundaries of cells, lines and the row.
fn ranges(row_bytes: usize) -> [(usize, usize); 14] {
    [
        (0, 1),
        (8, 8),
        (17, 3),
        (31, 9),
        (64, 64),
        (127, 2),
        (130, 61),
        (200, 200),
        (448, 24),
        (513, 1000),
        (2048, 1024),
        (3200, 5),
        (row_bytes - 72, 8),
        (row_bytes - 5, 5),
    ]
}

/// Returns the expected contents of a copy to which only these ranges were written.
fn only(row: &[u8], ranges: &[(usize, usize)]) -> Vec<u8> {
    let mut expected = vec![0; row.len()];
    for (offset, length) in ranges {
        let range = *offset..offset + length;
        expected[range.clone()].copy_from_slice(&row[range]);
    }
    expected
}

fn lands_exactly<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let shared = promises(bench, Promises::SHARED);
    let guard_bytes_max = capabilities(bench).guard_bytes_max;
    let rows: Vec<Vec<u8>> = everyone().map(|member| fill_with_pattern(bench, member)).collect();
    let ranges = ranges(rows[0].len());
    // Every second short range is written as a guard.
    let writes: Vec<Write> = (ranges.iter().enumerate())
        .map(|(index, (offset, length))| {
            let is_guard = index % 2 == 0 && *length <= guard_bytes_max;
            Write::of_row(*offset, *length, if is_guard { Kind::Guard } else { Kind::Content })
        })
        .collect();
    // Each link carries some of the ranges, so that a write to the wrong peer is detected.
    let ways = [((A, B), 0..14), ((A, C), 3..6), ((B, A), 5..11), ((C, A), 0..2), ((C, B), 8..14)];
    for (way, indices) in ways.clone() {
        for list in writes[indices].chunks(4) {
            post(bench, way, list, None)?;
        }
        bench.pass();
    }
    bench.settle();
    for owner in everyone() {
        let row = &rows[owner.index()];
        ensure_same(&snapshot(&bench.row(owner).reader()), row, &format!("{owner}'s own row"))?;
        for holder in everyone().filter(|holder| *holder != owner) {
            let posted = ways.iter().find(|(way, _)| *way == (owner, holder));
            let posted = posted.map_or(&[][..], |(_, indices)| &ranges[indices.clone()]);
            let what = format!("{holder}'s copy of {owner}'s row after posts of {posted:?}");
            let expected = if shared { row.clone() } else { only(row, posted) };
            ensure_same(&snapshot(&bench.copy(holder, owner)), &expected, &what)?;
        }
    }
    Ok(if shared { Finding::InPart(SHARED_ROWS) } else { Finding::Holds })
}

fn in_place<T: Bench>(bench: &mut T) -> ClauseResult {
    const BYTES: usize = 64;
    open_all(bench)?;
    let shared = promises(bench, Promises::SHARED);
    let row = fill_with_pattern(bench, A);
    let mut expected = if shared { row.clone() } else { vec![0; row.len()] };
    let area = |region, offset| Area { region, offset };
    for kind in [Kind::Content, Kind::Guard] {
        let write = |source, target| Write { source, target, length: 24, kind };
        for (source, target) in [
            (area(Region(7), 0), area(Region::ROW, 0)),
            (area(Region::ROW, 0), area(Region(7), 0)),
            (area(Region(u16::MAX), 0), area(Region(u16::MAX), 0)),
        ] {
            let result = try_post(bench, (A, B), &[write(source, target)], None);
            ensure_refused(result, &format!("a {kind:?} write from {source:?} to {target:?}"))?;
        }
    }
    let moved = Write {
        source: area(Region::ROW, 256),
        target: area(Region::ROW, 1024),
        length: BYTES,
        kind: Kind::Content,
    };
    let result = try_post(bench, (A, B), &[moved], None);
    if result.is_ok() {
        expected[1024..1024 + BYTES].copy_from_slice(&row[256..256 + BYTES]);
    } else {
        ensure_refused(result, "a write to another offset")?;
    }
    bench.settle();
    let what = format!("{B}'s copy after a write from 256 to 1024 with the result {result:?}");
    ensure_same(&snapshot(&bench.copy(B, A)), &expected, &what)?;
    Ok(if shared { Finding::InPart(SHARED_ROWS) } else { Finding::Holds })
}

fn limits_are_taken<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let limits = capabilities(bench);
    let row = fill_with_pattern(bench, A);
    let expect = |bench: &mut T, to: Rank, writes: &[Write], what: &str| -> Result<(), Breach> {
        post(bench, (A, to), writes, None)
            .map_err(|Breach(how)| Breach(format!("{what}: {how}")))?;
        bench.settle();
        let copy = snapshot(&bench.copy(to, A));
        for write in writes {
            let range = write.target.offset..write.target.offset + write.length;
            ensure_same(
                &copy[range.clone()],
                &row[range],
                &format!("{what}, from {}", write.target.offset),
            )?;
        }
        Ok(())
    };
    expect(bench, B, &[], "an empty list")?;
    expect(bench, B, &[content(128, 0)], "an empty write")?;
    // A fabric may accept very long lists, longer than the number of cells in the row.
    let full: Vec<Write> =
        (0..limits.writes_max.min(512)).map(|index| guard(index * 8, 8)).collect();
    expect(bench, B, &full, "a list as long as it may be")?;
    let guard_bytes = limits.guard_bytes_max.min(row.len());
    expect(
        bench,
        C,
        &[guard(row.len() - guard_bytes, guard_bytes)],
        "a guard as long as it may be",
    )?;
    let write_bytes = limits.write_bytes_max.min(row.len());
    expect(
        bench,
        C,
        &[content(row.len() - write_bytes, write_bytes)],
        "a write as long as it may be",
    )?;
    Ok(Finding::Holds)
}
