//! Formatting of numbers.

/// Formats numbers with their positions, as in `2: 9.87, 4: 9.71`, or a single number without its
/// position.
pub(super) fn listed(places: &[String], numbers: &[f64]) -> String {
    if places.is_empty() {
        return numbers.iter().map(|number| short(*number)).collect();
    }
    let words = places.iter().zip(numbers).map(|(place, figure)| {
        format!("{place}: {}", short(*figure)) //
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Formats a number with three significant digits.
pub(super) fn short(number: f64) -> String {
    let digits = match number.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        _ => 4,
    };
    let text = format!("{number:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        let texts: Vec<_> = [1234.6, 97.64, 9.704, 0.5, 0.0123].into_iter().map(short).collect();
        assert_eq!(texts, ["1235", "97.6", "9.7", "0.5", "0.0123"]);
    }
}
