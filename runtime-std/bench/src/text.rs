//! The text output of experiments, made from the same fields as their JSON output.

use serde::Serialize;
use serde_json::Value;
use tramontane_local::table::{Table, scaled};

/// A list in a report that is printed as a table.
pub(crate) struct ReportTable {
    /// The name of the list.
    pub(crate) list: &'static str,
    /// The names of the columns, which are fields of the list's objects, separated by spaces.
    pub(crate) columns: &'static str,
    /// The columns that hold text, counted from zero.
    pub(crate) left: &'static [usize],
}

/// Formats a report: these fields, one per line, then these lists as tables. Empty lists are left
/// out. A median stands before its minimum and maximum.
pub(crate) fn text(report: &impl Serialize, fields: &str, tables: &[ReportTable]) -> String {
    // A report has only fields that JSON can represent.
    let report = serde_json::to_value(report).unwrap_or_default();
    let mut text = String::new();
    for field in fields.split_whitespace() {
        if !report[field].is_null() {
            text += &format!("{}: {}\n", words(field), cell(&report[field]));
        }
    }
    for ReportTable { list, columns, left } in tables {
        let rows = report[list].as_array().map_or(&[][..], Vec::as_slice);
        if rows.is_empty() {
            continue;
        }
        let columns: Vec<&str> = columns.split_whitespace().collect();
        let headings: Vec<String> = columns.iter().map(|column| words(column)).collect();
        let mut table = Table::new(&headings.join("  "), left);
        for row in rows {
            table.row(columns.iter().map(|column| cell(&row[column])));
        }
        text += &table.to_string();
    }
    text
}

fn words(field: &str) -> String {
    field.replace('_', " ")
}

/// Formats a value. Objects other than a median with its spread are lists of their fields.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(value) if value.is_f64() => number(value.as_f64().unwrap_or_default()),
        Value::Object(fields) if fields.contains_key("median") => {
            let rest = ["min", "max"].map(|field| fields.get(field).map(cell));
            let median = cell(&value["median"]);
            match rest {
                [Some(min), Some(max)] => format!("{median} ({min}..{max})"),
                _ => median,
            }
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let shown = fields.map(|(name, value)| format!("{} {}", words(name), cell(value)));
            shown.collect::<Vec<_>>().join(", ")
        }
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join("; "),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Formats a number with at least three digits.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        1e5.. => scaled(value).trim_end().to_owned(),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_text_has_named_fields_and_lists() {
        let spread = |median: f64| serde_json::json!({"median": median, "min": 0.5, "max": 1e6});
        let row = |name: &str| {
            serde_json::json!({
                "name": name, "rate": spread(12.345), "probe": {"kind": "ring", "ratio": 0.25},
                "count": 7, "unused": true,
            })
        };
        let report = serde_json::json!({
            "machine": "2 x none", "last_ns": spread(523.4), "none": null,
            "rows": [row("a"), row("bc")], "empty": [],
        });
        let rows = ReportTable { list: "rows", columns: "name rate probe count", left: &[0, 2] };
        let empty = ReportTable { list: "empty", columns: "name", left: &[] };
        assert_eq!(
            text(&report, "machine last_ns none", &[rows, empty]),
            "machine: 2 x none\n\
             last ns: 523 (0.500..1.00 M)\n\
             name                  rate  probe                   count\n\
             a     12.3 (0.500..1.00 M)  kind ring, ratio 0.250      7\n\
             bc    12.3 (0.500..1.00 M)  kind ring, ratio 0.250      7\n"
        );
    }
}
