//! Metrics in Prometheus' text format, version 0.0.4: those of a group, and a program's own on the
//! same page.
//!
//! ```
//! use tramontane_runtime::group::GroupStatus;
//! use tramontane_runtime::metrics::MetricsPage;
//!
//! # let status = GroupStatus::default();
//! let mut page = MetricsPage::new(&[("node", "0")]);
//! page.counter("bank_transfers", "Transfers between accounts", 12);
//! status.add_metrics(&mut page);
//! let text = page.into_text();
//! assert!(text.contains("bank_transfers_total{node=\"0\"} 12"));
//! assert!(text.contains("tramontane_view_members{node=\"0\"} 0"));
//! ```

use std::fmt::{Display, Write as _};

/// The number of observations up to each bucket's upper end, and the sum of all observations.
#[derive(Clone, Debug)]
pub struct Histogram<const CLASSES: usize> {
    ends: [f64; CLASSES],
    counts: [u64; CLASSES],
    count: u64,
    sum: f64,
}

impl<const CLASSES: usize> Histogram<CLASSES> {
    /// Creates a histogram whose buckets have these upper ends.
    #[must_use]
    pub const fn new(ends: [f64; CLASSES]) -> Self {
        Self { ends, counts: [0; CLASSES], count: 0, sum: 0.0 }
    }

    /// Adds an observation.
    pub fn observe(&mut self, value: f64) {
        let classes = self.ends.iter().zip(&mut self.counts);
        classes.filter(|(end, _)| value <= **end).for_each(|(_, count)| *count += 1);
        self.count += 1;
        self.sum += value;
    }
}

/// A page of metrics. A name begins with what it belongs to, such as `bank_`; the names of a group
/// begin with `tramontane_`. A help text is a sentence without its full stop.
#[derive(Debug)]
pub struct MetricsPage {
    text: String,
    /// Labels of all metrics, in the form used between the braces.
    labels: String,
}

impl MetricsPage {
    /// Creates an empty page. All of its metrics get these labels.
    #[must_use]
    pub fn new(labels: &[(&str, &str)]) -> Self {
        Self { text: String::new(), labels: joined(labels) }
    }

    /// Returns the text of the page.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// Adds a counter, which never decreases. `_total` is added to its name.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help, &[([], value)]);
    }

    /// Adds a gauge, which may rise and fall.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.gauges(name, help, &[([], value)]);
    }

    /// Adds counters, one for each set of labels. `_total` is added to the name.
    pub fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: &[([(&str, &str); N], u64)],
    ) {
        self.family(&format!("{name}_total"), help, "counter", values);
    }

    /// Adds gauges, one for each set of labels.
    pub fn gauges<const N: usize, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        values: &[([(&str, &str); N], V)],
    ) {
        self.family(name, help, "gauge", values);
    }

    /// Adds a histogram.
    pub fn histogram<const CLASSES: usize>(
        &mut self,
        name: &str,
        help: &str,
        seen: &Histogram<CLASSES>,
    ) {
        self.head(name, help, "histogram");
        let bucket = format!("{name}_bucket");
        for (end, count) in seen.ends.iter().zip(seen.counts) {
            self.sample(&bucket, &[("le", &end.to_string())], count);
        }
        self.sample(&bucket, &[("le", "+Inf")], seen.count);
        self.sample(&format!("{name}_sum"), &[], seen.sum);
        self.sample(&format!("{name}_count"), &[], seen.count);
    }

    fn family<const N: usize, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        kind: &str,
        values: &[([(&str, &str); N], V)],
    ) {
        if !values.is_empty() {
            self.head(name, help, kind);
        }
        values.iter().for_each(|(labels, value)| self.sample(name, labels, value));
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let own = joined(labels);
        let comma = if own.is_empty() { "" } else { "," };
        let _ = writeln!(self.text, "{name}{{{}{comma}{own}}} {value}", self.labels);
    }
}

/// Formats labels in the form used between the braces.
fn joined(labels: &[(&str, &str)]) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    labels.collect::<Vec<_>>().join(",")
}
