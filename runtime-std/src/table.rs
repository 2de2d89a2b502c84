//! Tables for people: columns as wide as they must be, numbers to the right, and no line wider than a terminal.

use std::fmt;
use std::ops::Range;

/// How wide a line may be: what every terminal has.
pub(crate) const LINE_CHARACTERS: usize = 80;

/// How far the columns are set in that have no place beside the first ones.
const INDENT: usize = 4;

/// A table that grows row by row.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    left: &'static [usize],
}

impl Table {
    /// A table with these headings; the columns of `left` (from zero) hold text, the others numbers.
    pub(crate) fn new(headings: &[&str], left: &'static [usize]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()], left }
    }

    /// One more row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl Table {
    /// The columns that stand side by side, as many as there is room for. With the second group on they are set in.
    fn groups(widths: &[usize]) -> Vec<Range<usize>> {
        let mut groups = Vec::new();
        let (mut start, mut width) = (0, 0);
        for (column, own) in widths.iter().enumerate() {
            let with_gap = width + GAP + own;
            if column > start && with_gap > LINE_CHARACTERS {
                groups.push(start..column);
                (start, width) = (column, INDENT + own);
            } else if column == start {
                width += own;
            } else {
                width = with_gap;
            }
        }
        groups.push(start..widths.len());
        groups
    }

    /// The cells of some columns of a row.
    fn line(&self, row: &[String], columns: Range<usize>, widths: &[usize]) -> String {
        let mut line = String::new();
        let first = columns.start;
        for (column, (cell, width)) in
            columns.clone().zip(row.get(columns).unwrap_or_default().iter().zip(&widths[first..]))
        {
            if column > first {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = if self.left.contains(&column) {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
            line.push_str(&cell);
        }
        line.trim_end().to_owned()
    }
}

/// Between two columns.
const GAP: usize = 2;

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for row in &self.rows {
            for columns in Self::groups(&widths) {
                let indent = if columns.start > 0 { INDENT } else { 0 };
                let first = columns.start;
                let line =
                    self.line(row, columns.start..columns.end.min(row.len()).max(first), &widths);
                if indent == 0 || !line.trim().is_empty() {
                    write!(out, "{}", in_lines(&line, indent, indent))?;
                }
            }
        }
        Ok(())
    }
}

/// The same text with its lines cut at spaces, so that none is too wide; what is cut off is set in a little.
pub(crate) fn wrapped(text: &str) -> String {
    text.lines().map(|line| in_lines(line, 0, INDENT / 2)).collect()
}

/// A line as one or several: the first set in by `first`, the others by `rest`.
fn in_lines(line: &str, first: usize, rest: usize) -> String {
    let (mut text, mut left, mut indent) = (String::new(), line, first);
    loop {
        let room = LINE_CHARACTERS - indent;
        let end = left.char_indices().nth(room).map(|(end, _)| end);
        // Behind the spaces that it may begin with.
        let begin = left.len() - left.trim_start().len();
        let cut = end.and_then(|end| {
            let cut = left[..end].rfind(' ').filter(|cut| *cut > begin);
            cut.or_else(|| left[end..].find(' ').map(|more| end + more))
        });
        let (part, more) = cut.map_or((left, ""), |cut| (&left[..cut], left[cut..].trim_start()));
        text.push_str(&" ".repeat(if part.is_empty() { 0 } else { indent }));
        text.push_str(part.trim_end());
        text.push('\n');
        if more.is_empty() {
            return text;
        }
        (left, indent) = (more, rest);
    }
}

/// A count of something a second, in the unit that suits it: `12.3 M`.
pub(crate) fn scaled(value: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match UNITS.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", value / unit),
        None => format!("{value:.2} "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_right_and_text_left() {
        let mut table = Table::new(&["count", "what"], &[1]);
        table.row(["7".into(), "a".into()]);
        table.row(["123456".into(), "bcdefg".into()]);
        assert_eq!(table.to_string(), " count  what\n     7  a\n123456  bcdefg\n");
    }

    #[test]
    fn what_has_no_place_beside_the_first_columns_stands_below_them() {
        let mut table = Table::new(&["name", "count", "what"], &[0, 2]);
        let long = "word ".repeat(30);
        table.row(["x".repeat(70), "123456".into(), long.trim().to_owned()]);
        table.row(["y".into(), "7".into(), String::new()]);
        let text = table.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= LINE_CHARACTERS), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("{:<70}   count", "name"));
        assert_eq!(lines[1], "    what");
        assert_eq!(lines[2], format!("{}  123456", "x".repeat(70)));
        assert!(
            lines[3].starts_with("    word word") && lines[4].starts_with("    word"),
            "{text}"
        );
        assert_eq!(lines.last().copied(), Some(format!("{:<70}       7", "y").as_str()));
        assert_eq!(text.matches("word").count(), 30);
    }

    #[test]
    fn long_lines_are_cut_at_spaces_and_others_stay() {
        let long = format!("{} end", "word ".repeat(20).trim());
        let text = wrapped(&format!("short\n\n  {long}\n{}\n", "x".repeat(100)));
        assert!(text.starts_with("short\n\n  word") && text.contains("\n  word"), "{text}");
        assert!(text.ends_with(&format!("end\n{}\n", "x".repeat(100))), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.len() > LINE_CHARACTERS).count(),
            1,
            "what has no space"
        );
    }

    #[test]
    fn rates_have_the_unit_that_suits_them() {
        assert_eq!(scaled(12_345_678.0), "12.35 M");
        assert_eq!(scaled(999.0), "999.00 ");
        assert_eq!(scaled(2.5e9), "2.50 G");
    }
}
