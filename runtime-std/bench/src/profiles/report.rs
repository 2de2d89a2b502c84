//! What `bench parameters` prints: each parameter of a machine.

use serde::Serialize;
use tramontane_local::table::Table;

use super::{Machine, Row};

/// The parameters of a machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ParametersReport {
    profile: String,
    about: String,
    parameters: Vec<Row>,
}

impl ParametersReport {
    /// Of a machine.
    pub(crate) fn of(machine: Machine) -> Self {
        let Machine { name, about, rows, profile: _ } = machine;
        Self { profile: name, about, parameters: rows }
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let headings = "parameter  value  unit  within a factor  set by  source";
        let mut table = Table::new(headings, &[0, 2, 4, 5]);
        for row in &self.parameters {
            table.row([
                row.name.into(),
                row.value.to_string(),
                row.unit.into(),
                row.uncertainty.to_string(),
                row.set_by.clone(),
                row.source.clone(),
            ]);
        }
        format!("{}: {}\n{table}", self.profile, self.about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_a_line() {
        let machine = Machine::of_defaults("some", "what it is");
        let rows = machine.rows.clone();
        let text = ParametersReport::of(machine).text();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("some: what it is"));
        assert!(lines.next().is_some_and(|line| line.trim_start().starts_with("parameter")));
        for (line, row) in lines.zip(&rows) {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[..2], [row.name, &row.value.to_string()], "{line}");
            assert!(line.ends_with(row.source.trim_end()), "{line}");
        }
        assert_eq!(text.lines().count(), rows.len() + 2);
    }
}
