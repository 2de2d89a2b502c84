//! Medians, and figures with their spread.

/// Returns the median of some numbers, or zero if there are none.
#[must_use]
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => 0.0,
        (half, 0) => (sorted[half - 1] + sorted[half]) / 2.0,
        (half, _) => sorted[half],
    }
}

/// A median with the minimum and the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// Computes the spread of some numbers.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Self {
        Self {
            median: median(numbers),
            min: numbers.iter().copied().fold(f64::INFINITY, f64::min),
            max: numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_numbers_is_correct() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(Spread::of(&[2.0, 8.0, 4.0]), Spread { median: 4.0, min: 2.0, max: 8.0 });
        assert_eq!(Spread::of(&[-2.0, -8.0]), Spread { median: -5.0, min: -8.0, max: -2.0 });
    }
}
