//! How far predictions are off: quartiles of what was measured, and errors of many rows together.

use serde::{Deserialize, Serialize};

use crate::spread::median;

/// Errors up to this count as good.
pub(super) const GOOD: f64 = 0.30;

/// A median with its quartiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Quartiles {
    /// A quarter is below.
    pub(super) lower: f64,
    /// Half is below.
    pub(super) median: f64,
    /// Three quarters are below.
    pub(super) upper: f64,
}

impl Quartiles {
    /// Of some numbers; zeros of none. The quartiles are the medians of the numbers below and above
    /// the median, which counts to both where it is one of them.
    pub(super) fn of(numbers: &[f64]) -> Self {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len().div_ceil(2);
        Self {
            lower: median(&sorted[..half]),
            median: median(&sorted),
            upper: median(&sorted[sorted.len() - half..]),
        }
    }
}

/// A prediction's error: how far it is above or below what was measured, as a share of that.
pub(super) fn error_of(predicted: f64, measured: f64) -> f64 {
    predicted / measured - 1.0
}

/// Errors of many rows together, without their signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Errors {
    /// Rows.
    pub(super) rows: usize,
    /// Half of the rows are off by less.
    pub(super) median: f64,
    /// The largest error.
    pub(super) largest: f64,
    /// The share of rows that are off by at most [`GOOD`].
    pub(super) good: f64,
}

impl Errors {
    /// Of some rows' errors; a row without a number is the worst there can be.
    pub(super) fn of(errors: &[f64]) -> Self {
        let without_sign = |error: &f64| if error.is_nan() { f64::INFINITY } else { error.abs() };
        let errors: Vec<f64> = errors.iter().map(without_sign).collect();
        let good = errors.iter().filter(|error| **error <= GOOD).count();
        Self {
            rows: errors.len(),
            median: median(&errors),
            largest: errors.iter().copied().fold(0.0, f64::max),
            good: good as f64 / errors.len().max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_few_and_of_many() {
        let quartiles = |numbers: &[f64]| {
            let Quartiles { lower, median, upper } = Quartiles::of(numbers);
            (lower, median, upper)
        };
        assert_eq!(quartiles(&[]), (0.0, 0.0, 0.0));
        assert_eq!(quartiles(&[7.0]), (7.0, 7.0, 7.0));
        assert_eq!(quartiles(&[4.0, 2.0]), (2.0, 3.0, 4.0));
        assert_eq!(quartiles(&[5.0, 1.0, 3.0, 2.0, 4.0]), (2.0, 3.0, 4.0));
        assert_eq!(quartiles(&[8.0, 1.0, 7.0, 2.0, 6.0, 3.0]), (2.0, 4.5, 7.0));
    }

    #[test]
    fn errors_are_shares_of_what_was_measured() {
        assert_eq!(error_of(150.0, 100.0), 0.5);
        assert_eq!(error_of(75.0, 100.0), -0.25);
    }

    #[test]
    fn errors_of_hand_made_rows() {
        let errors = Errors::of(&[0.1, -0.2, 0.31, -0.3, 0.05]);
        assert_eq!(errors, Errors { rows: 5, median: 0.2, largest: 0.31, good: 0.8 });
        let errors = Errors::of(&[f64::NAN, 0.1]);
        assert_eq!((errors.largest, errors.good), (f64::INFINITY, 0.5));
        assert_eq!(Errors::of(&[]).rows, 0);
    }
}
