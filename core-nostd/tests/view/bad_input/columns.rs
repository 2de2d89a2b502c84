//! Columns that a row lacks, and cells that fail their check.

use super::victim::SUBGROUPS;
use super::*;

/// A value for a column that the row lacks is not published, and the column reads as if it had
/// never been published.
#[test]
fn value_of_missing_column_is_not_published() {
    let plain = Layout::with_views(GROUP).expect("a good group");
    for layout in [plain, plain.with_checks().expect("small")] {
        let bytes = layout.row_bytes(Rank(1));
        let lines: Vec<Line> = (0..bytes / 64).map(|_| Line::new()).collect();
        let rows = [Row::from_lines(&lines); 3];
        let mut table = RowTable::new(&layout, Rank(1), &rows, RowWriter::from_lines(&lines));
        let nowhere = ViewColumn::Trim(SubgroupId(9));
        table.publish(nowhere, 3);
        assert_eq!((table.version(), table.heartbeats()), (0, 0));
        assert_eq!(table.load(Rank(1), nowhere), 0);
        assert_eq!(table.load(Rank(7), ViewColumn::Heartbeat), 0, "of no member");
        table.publish(ViewColumn::Heartbeat, 3);
        table.publish(ViewColumn::Trim(SubgroupId(0)), 4);
        assert_eq!((table.version(), table.heartbeats()), (1, 1));
        assert_eq!(table.load(Rank(1), ViewColumn::Heartbeat), 3);
    }
}

/// A cell that fails its check during a step reads as not yet written, or as an impossible value,
/// but never as a promise.
#[test]
fn corrupt_cell_reads_as_empty_or_impossible() {
    let layout = Layout::with_views(GROUP).and_then(Layout::with_checks).expect("small");
    let lines: Vec<Line> = (0..layout.row_bytes(Rank(0)) / 64).map(|_| Line::new()).collect();
    let rows = [Row::from_lines(&lines); 3];
    let table = RowTable::new(&layout, Rank(1), &rows, RowWriter::from_lines(&lines));
    for (column, read) in [
        (ViewColumn::Stance, u64::MAX),
        (ViewColumn::Suspicions(0), u64::MAX),
        (ViewColumn::Heartbeat, 0),
        (ViewColumn::Committed, 0),
        (ViewColumn::Entry(1), 0),
        (ViewColumn::Wedged(SubgroupId(0)), 0),
        (ViewColumn::Trim(SubgroupId(0)), 0),
    ] {
        let offset = layout.view_offset(Rank(0), column).expect("a column");
        RowWriter::from_lines(&lines).cell(offset).expect("inside the row").publish(77);
        assert_eq!(table.load(Rank(0), column), read, "{column:?}");
    }
    // A member reads its own cells without a check, because only it writes them.
    assert_eq!(table.load(Rank(1), ViewColumn::Heartbeat), 77);
}

/// FLT-2: a word of suspicions takes two cells with checks. If a suspicion in the second cell were
/// missed, it would not spread.
#[test]
fn all_suspicions_are_read_when_checks_are_on() {
    let members: Vec<NodeId> = (1..=70).map(NodeId).collect();
    let plain =
        Layout::with_views(Group { members: &members, subgroups: &SUBGROUPS }).expect("good");
    for layout in [plain, plain.with_checks().expect("small")] {
        let lines: Vec<Line> = (0..layout.row_bytes(Rank(1)) / 64).map(|_| Line::new()).collect();
        let rows = [Row::from_lines(&lines); 2];
        let writer = RowWriter::from_lines(&lines);
        let (mut own, other) = (
            RowTable::new(&layout, Rank(1), &rows, writer),
            RowTable::new(&layout, Rank(0), &rows, writer),
        );
        for (word, bit) in [(0, 0), (0, 31), (0, 32), (0, 63), (1, 5)] {
            let column = ViewColumn::Suspicions(word);
            let flags = own.load(Rank(1), column) | 1 << bit;
            own.publish(column, flags);
            assert_eq!(own.load(Rank(1), column), flags, "{word} {bit}");
            assert_eq!(other.load(Rank(1), column), flags, "{word} {bit}");
        }
    }
}
