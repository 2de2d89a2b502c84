//! The result of a run.

use std::collections::BTreeMap;

/// The figures of one run, by name.
pub(super) type Figures = BTreeMap<&'static str, f64>;
