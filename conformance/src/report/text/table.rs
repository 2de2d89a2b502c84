//! Tables for people, with columns as wide as their texts in any script.

use std::fmt;

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    style: Style,
    right: bool,
}

impl Cell {
    /// Creates a left-aligned text cell.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates a right-aligned number cell.
    pub(super) fn number(text: impl Into<String>) -> Self {
        Self { right: true, ..Self::text(text) }
    }

    /// Changes the cell's style.
    pub(super) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    fn width(&self) -> usize {
        self.text.width()
    }
}

/// A table that grows row by row. Its first row is the heading.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column| self.rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for row in &self.rows {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                let padding = " ".repeat(width - cell.width());
                let (before, after) = if cell.right { (&*padding, "") } else { ("", &*padding) };
                // The end of a line needs no padding.
                let after = if column + 1 == row.len() { "" } else { after };
                let Cell { text, style, .. } = cell;
                write!(out, "{gap}{before}{style}{text}{style:#}{after}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_in_every_script_and_style() {
        let mut table = Table::default();
        let bold = Style::new().bold();
        table.row([Cell::text("case"), Cell::number("events"), Cell::text("result")]);
        table.row([Cell::text("節点").styled(bold), Cell::number("7"), Cell::text("passed")]);
        let plain = anstream::adapter::strip_str(&table.to_string()).to_string();
        assert_eq!(plain, "case  events  result\n節点       7  passed\n");
    }
}
