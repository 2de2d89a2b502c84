//! Metrics in Prometheus' text format, version 0.0.4.

use std::fmt::{Display, Write as _};

/// The number of observations up to each bucket's upper end, and the sum of all observations.
#[derive(Clone, Debug)]
pub(super) struct Histogram<const CLASSES: usize> {
    ends: [f64; CLASSES],
    counts: [u64; CLASSES],
    count: u64,
    sum: f64,
}

impl<const CLASSES: usize> Histogram<CLASSES> {
    /// Creates a histogram whose buckets have these upper ends.
    pub(super) const fn new(ends: [f64; CLASSES]) -> Self {
        Self { ends, counts: [0; CLASSES], count: 0, sum: 0.0 }
    }

    /// One more.
    pub(super) fn observe(&mut self, value: f64) {
        let classes = self.ends.iter().zip(&mut self.counts);
        classes.filter(|(end, _)| value <= **end).for_each(|(_, count)| *count += 1);
        self.count += 1;
        self.sum += value;
    }
}

/// The text of an answer, to which families of metrics are added.
#[derive(Debug)]
pub(super) struct Exposition {
    text: String,
    /// Labels of all metrics, in the form used between the braces.
    labels: String,
}

impl Exposition {
    /// Creates an empty text. All metrics get these labels.
    pub(super) fn new(labels: &[(&str, &str)]) -> Self {
        Self { text: String::new(), labels: joined(labels) }
    }

    /// Returns the whole text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Adds a counter, which never decreases.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help, &[([], value)]);
    }

    /// A figure.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.gauges(name, help, &[([], value)]);
    }

    /// Adds counters, one for each set of labels.
    pub(super) fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: &[([(&str, &str); N], u64)],
    ) {
        self.family(&format!("{name}_total"), help, "counter", values);
    }

    /// Adds gauges, one for each set of labels.
    pub(super) fn gauges<const N: usize, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        values: &[([(&str, &str); N], V)],
    ) {
        self.family(name, help, "gauge", values);
    }

    /// Adds a histogram.
    pub(super) fn histogram<const CLASSES: usize>(
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
        let _ = writeln!(
            self.text,
            "# HELP tramontane_{name} {help}.\n# TYPE tramontane_{name} {kind}"
        );
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let own = joined(labels);
        let comma = if own.is_empty() { "" } else { "," };
        let _ = writeln!(self.text, "tramontane_{name}{{{}{comma}{own}}} {value}", self.labels);
    }
}

/// Formats labels in the form used between the braces.
fn joined(labels: &[(&str, &str)]) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    labels.collect::<Vec<_>>().join(",")
}
