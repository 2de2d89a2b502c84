//! Numbers as text, in the forms that Redis accepts and prints.

use crate::refusal::CommandRefusal;

/// Parses a signed integer: no plus sign, no leading zeros, no spaces.
pub(crate) fn integer(text: &[u8]) -> Result<i64, CommandRefusal> {
    strict_integer(text).ok_or(CommandRefusal::NOT_INTEGER)
}

fn strict_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => text.len() == 1,
        [b'0', ..] | [] => false,
        _ => digits.iter().all(u8::is_ascii_digit),
    };
    if is_plain { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// Parses a count, which must not be negative.
pub(crate) fn count(text: &[u8]) -> Result<usize, CommandRefusal> {
    let count = integer(text)?;
    usize::try_from(count).map_err(|_| CommandRefusal::NOT_POSITIVE)
}

/// Parses a floating-point number, or an infinity. Refuses numbers that are out of range.
pub(crate) fn float(text: &[u8]) -> Result<f64, CommandRefusal> {
    let number = bound(text)?;
    let mut digits = text.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    let is_lost = number.is_infinite() && text.iter().any(u8::is_ascii_digit)
        || number == 0.0 && digits.any(|byte| matches!(byte, b'1'..=b'9'));
    if is_lost { Err(CommandRefusal::NOT_FLOAT) } else { Ok(number) }
}

/// Parses a floating-point number as the bound of a range. One that is out of range is infinite.
pub(crate) fn bound(text: &[u8]) -> Result<f64, CommandRefusal> {
    let number = std::str::from_utf8(text).ok().filter(|text| !text.is_empty());
    let number = number.and_then(|text| text.parse::<f64>().ok());
    number.filter(|number| !number.is_nan()).ok_or(CommandRefusal::NOT_FLOAT)
}

/// Formats a floating-point number as Redis does: integers have no point.
pub(crate) fn float_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    if number != 0.0 && !(1e-5..1e17).contains(&number.abs()) {
        let text = format!("{number:e}");
        return match text.split_once("e-") {
            Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
            None => text.replacen('e', "e+", 1),
        };
    }
    number.to_string()
}

/// Resolves a range of positions, which may be counted from the end, as `start..end`.
pub(crate) fn range(start: i64, stop: i64, length: usize) -> std::ops::Range<usize> {
    let length_i = i64::try_from(length).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { at.saturating_add(length_i).max(0) } else { at };
    let stop = if stop < 0 { stop.saturating_add(length_i) } else { stop };
    let (start, end) = (from_end(start), stop.saturating_add(1).min(length_i));
    if start >= end {
        return 0..0;
    }
    usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_strict() {
        for (text, number) in [
            ("0", 0),
            ("-1", -1),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(integer(text.as_bytes()), Ok(number));
        }
        for text in ["", "-", "+1", "01", "-0", " 1", "1 ", "9223372036854775808", "1.0"] {
            assert_eq!(integer(text.as_bytes()), Err(CommandRefusal::NOT_INTEGER), "{text:?}");
        }
    }

    #[test]
    fn floats_are_printed_shortly() {
        for (number, text) in [
            (3.0, "3"),
            (-2.5, "-2.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::INFINITY, "inf"),
            (1e20, "1e+20"),
            (1e-7, "1e-07"),
        ] {
            assert_eq!(float_text(number), text);
            assert_eq!(float(text.as_bytes()), Ok(number));
        }
        for text in ["nan", "1e400", "-1e400", "1e-400", "1 "] {
            assert_eq!(float(text.as_bytes()), Err(CommandRefusal::NOT_FLOAT), "{text}");
        }
        assert_eq!((float(b"-inf"), float(b"0e9")), (Ok(f64::NEG_INFINITY), Ok(0.0)));
        assert_eq!(bound(b"1e400"), Ok(f64::INFINITY));
    }

    #[test]
    fn ranges_count_from_both_ends() {
        for ((start, stop, length), expected) in [
            ((0, -1, 3), 0..3),
            ((-2, -1, 3), 1..3),
            ((1, 100, 3), 1..3),
            ((2, 1, 3), 0..0),
            ((5, 9, 3), 0..0),
            ((0, -9, 3), 0..0),
            ((i64::MIN, i64::MAX, 3), 0..3),
        ] {
            assert_eq!(range(start, stop, length), expected, "{start} {stop}");
        }
    }
}
