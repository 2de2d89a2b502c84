//! Tables for people: columns as wide as they must be, numbers to the right.

use std::fmt;

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

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                let cell = if self.left.contains(&column) {
                    format!("{gap}{cell:<width$}")
                } else {
                    format!("{gap}{cell:>width$}")
                };
                line.push_str(&cell);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
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
    fn rates_have_the_unit_that_suits_them() {
        assert_eq!(scaled(12_345_678.0), "12.35 M");
        assert_eq!(scaled(999.0), "999.00 ");
        assert_eq!(scaled(2.5e9), "2.50 G");
    }
}
