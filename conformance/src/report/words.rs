//! Numbers formatted for people.

use std::time::Duration;

/// Formats a time in a suitable unit: `1.25 s`, `3 min 20 s`.
#[must_use]
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 60.0 {
        return format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60);
    }
    nanoseconds(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Formats a time in nanoseconds in a suitable unit: `12.3 ms`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn nanoseconds(time_ns: u64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let time = time_ns as f64;
    let Some((unit, name)) = UNITS.iter().find(|(unit, _)| time >= *unit) else {
        return format!("{time_ns} ns");
    };
    let value = time / unit;
    let places = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.places$} {name}")
}

/// Formats an amount of memory: `12.5 MiB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [(f64, &str); 3] = [(1073741824.0, "GiB"), (1048576.0, "MiB"), (1024.0, "KiB")];
    let value = bytes as f64;
    match UNITS.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", value / unit),
        None => format!("{bytes} B"),
    }
}

/// Formats a count with its digits in groups of three: `1 234 567`.
#[must_use]
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

/// Formats a count with its noun: `1 event`, `2 events`.
#[must_use]
pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Formats a frequency: `once`, `2 times`.
#[must_use]
pub(super) fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { counted(number, "time") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_a_suitable_unit() {
        assert_eq!(time(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(time(Duration::from_micros(1250)), "1.25 ms");
        assert_eq!(nanoseconds(999), "999 ns");
        assert_eq!(nanoseconds(123_456_789), "123 ms");
        assert_eq!(bytes(13_107_200), "12.5 MiB");
        assert_eq!(bytes(7), "7 B");
    }

    #[test]
    fn counts_are_grouped_and_agree_with_their_nouns() {
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(12), "12");
        assert_eq!(counted(1, "event"), "1 event");
        assert_eq!(counted(0, "event"), "0 events");
    }
}
