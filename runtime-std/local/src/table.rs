//! Tables for people: numbers are right-aligned, and each row is one line. On a terminal, no line
//! is wider than the terminal: cells are wrapped, and if even single words do not fit next to each
//! other, the cells of a row are printed one below the other.

use std::fmt;
use std::io::{self, IsTerminal as _};

/// Width of the gap between two columns.
const GAP: usize = 2;

/// Indentation of continuation lines.
const INDENT: usize = 2;

/// A table that grows row by row.
#[derive(Debug)]
pub struct Table {
    headings: Vec<String>,
    /// Indices, from zero, of the columns that hold text.
    left: &'static [usize],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these headings, given as one line with two spaces between them. The
    /// columns of `left` (from zero) hold text, the others numbers.
    #[must_use]
    pub fn new(headings: &str, left: &'static [usize]) -> Self {
        let headings = headings.split("  ").map(str::to_owned).collect();
        Self { headings, left, rows: Vec::new() }
    }

    /// Adds a row. Missing cells at its end stay empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Formats the table as lines of at most `width` characters, if a width is given.
    fn lines(&self, width: Option<usize>) -> String {
        let mut widths: Vec<usize> = (0..self.headings.len())
            .map(|column| self.cells(column).map(length).max().unwrap_or(0))
            .collect();
        if let Some(room) = width {
            let words: Vec<usize> = (0..widths.len())
                .map(|column| self.cells(column).flat_map(|cell| cell.split(' ')).map(length))
                .map(|lengths| lengths.max().unwrap_or(0))
                .collect();
            if total(&words) > room {
                return self.one_below_the_other(room);
            }
            // The widest column that can be wrapped is narrowed until all columns fit.
            while total(&widths) > room {
                let cuttable = (0..widths.len()).filter(|column| widths[*column] > words[*column]);
                let Some(widest) = cuttable.max_by_key(|column| widths[*column]) else { break };
                widths[widest] -= 1;
            }
        }
        let rows = std::iter::once(&self.headings).chain(&self.rows);
        rows.map(|row| self.side_by_side(row, &widths)).collect()
    }

    /// Returns the heading and the cells of a column.
    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        let rows = std::iter::once(&self.headings).chain(&self.rows);
        rows.filter_map(move |row| row.get(column)).map(String::as_str)
    }

    /// Formats a row in as many lines as its longest cell needs.
    fn side_by_side(&self, row: &[String], widths: &[usize]) -> String {
        let cells: Vec<Vec<String>> =
            row.iter().zip(widths).map(|(cell, at)| cut(cell, *at)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for line in 0..height {
            let mut shown = String::new();
            for (column, width) in widths.iter().enumerate() {
                let part = cells.get(column).and_then(|cell| cell.get(line));
                let (part, width) = (part.map_or("", String::as_str), *width);
                shown += &if self.left.contains(&column) {
                    format!("{part:<width$}")
                } else {
                    format!("{part:>width$}")
                };
                shown += &" ".repeat(GAP);
            }
            text += shown.trim_end();
            text.push('\n');
        }
        text
    }

    /// Formats each row as a block of lines, each with a heading and its cell.
    fn one_below_the_other(&self, room: usize) -> String {
        let headings = self.headings.iter().map(|heading| length(heading)).max().unwrap_or(0);
        let block = |row: &Vec<String>| {
            let mut text = String::new();
            for (heading, cell) in self.headings.iter().zip(row) {
                let parts = cut(cell, room.saturating_sub(headings + GAP).max(1));
                for (line, part) in parts.iter().enumerate() {
                    let heading = if line == 0 { heading } else { "" };
                    let shown = format!("{heading:<headings$}{}{part}", " ".repeat(GAP));
                    text += shown.trim_end();
                    text.push('\n');
                }
            }
            text
        };
        self.rows.iter().map(block).collect::<Vec<_>>().join("\n")
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Returns the width of a line with columns of the given widths.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Wraps a cell into lines of at most `width` characters, at spaces, and within longer words if
/// necessary.
fn cut(cell: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in cell.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        let last = lines.last_mut().expect("there is one");
        if last.is_empty() || length(last) + 1 + word.len() <= width {
            last.push_str(if last.is_empty() { "" } else { " " });
        } else {
            lines.push(String::new());
        }
        while word.len() > width.max(1) {
            let rest = word.split_off(width.max(1));
            lines.last_mut().expect("there is one").extend(word);
            lines.push(String::new());
            word = rest;
        }
        lines.last_mut().expect("there is one").extend(word);
    }
    lines
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.lines(terminal_width()))
    }
}

/// Returns the width of the terminal on standard output in characters, or `None` if there is no
/// terminal or its width is unknown.
fn terminal_width() -> Option<usize> {
    let output = io::stdout();
    let size = output.is_terminal().then(|| rustix::termios::tcgetwinsize(&output).ok())??;
    Some(size.ws_col.into()).filter(|columns| *columns > 0)
}

/// Wraps text. On a terminal, lines are broken at spaces so that none is wider than the terminal,
/// and continuation lines are indented.
#[must_use]
pub fn wrapped(text: &str) -> String {
    match terminal_width() {
        Some(width) => wrapped_to(text, width),
        None => text.lines().map(|line| line.trim_end().to_owned() + "\n").collect(),
    }
}

fn wrapped_to(text: &str, width: usize) -> String {
    text.lines().map(|line| in_lines(line, width)).collect()
}

/// Wraps one line.
fn in_lines(line: &str, width: usize) -> String {
    let (mut text, mut left, mut indent) = (String::new(), line, 0);
    loop {
        let room = width.saturating_sub(indent).max(1);
        let end = left.char_indices().nth(room).map(|(end, _)| end);
        // The first break comes after the leading spaces.
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
        (left, indent) = (more, INDENT);
    }
}

/// Formats a rate per second in a suitable unit: `12.3 M`.
pub fn scaled(value: f64) -> String {
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
    fn table_aligns_numbers_right_and_text_left() {
        let mut table = Table::new("count  what", &[1]);
        table.row(["7".into(), "a".into()]);
        table.row(["123456".into(), "bcdefg".into()]);
        table.row(["8".into()]);
        assert_eq!(table.lines(None), " count  what\n     7  a\n123456  bcdefg\n     8\n");
    }

    #[test]
    fn rows_wrap_only_on_narrow_terminals() {
        let mut table = Table::new("name  count  what", &[0, 2]);
        table.row(["x".repeat(30), "123456".into(), "word ".repeat(30).trim().to_owned()]);
        table.row(["y".into(), "7".into(), String::new()]);
        assert_eq!(table.lines(None).lines().count(), 3);
        for width in [60, 80, 132] {
            let text = table.lines(Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(text.lines().count() > 3, "{text}");
            assert_eq!(text.matches("word").count(), 30, "{text}");
            assert!(text.contains("123456"), "a number stays whole: {text}");
        }
        let text = table.lines(Some(36));
        assert!(text.starts_with(&format!("name   {}\n       x\n", "x".repeat(29))), "{text}");
        assert!(text.contains("\ncount  123456\nwhat   word word"), "{text}");
        assert!(text.ends_with("\nname   y\ncount  7\nwhat\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 36), "{text}");
    }

    #[test]
    fn only_long_lines_are_wrapped() {
        let long = format!("{} end", "word ".repeat(20).trim());
        let text = wrapped_to(&format!("short\n\n  {long}\n{}\n", "x".repeat(100)), 80);
        assert!(text.starts_with("short\n\n  word") && text.contains("\n  word"), "{text}");
        assert!(text.ends_with(&format!("end\n{}\n", "x".repeat(100))), "{text}");
        assert_eq!(text.lines().filter(|line| line.len() > 80).count(), 1, "what has no space");
    }

    #[test]
    fn rates_are_printed_in_suitable_units() {
        assert_eq!(scaled(12_345_678.0), "12.35 M");
        assert_eq!(scaled(999.0), "999.00 ");
        assert_eq!(scaled(2.5e9), "2.50 G");
    }
}
