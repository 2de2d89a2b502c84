//! The numbers of INCRBYFLOAT. Redis computes them in C's `long double`, which on x86 has 64 bits
//! of precision, and prints 17 digits after the point.
//!
//! This file computes them with integers, so that all members get the same result on any processor.
//! Crates that compute with such numbers do not print them in this way, and decimal crates round in
//! other places than Redis.

use num_bigint::BigUint;

/// The maximum length of a number's text, in bytes. Redis has the same limit.
const TEXT_MAX: usize = 5 << 10;

/// The greatest and least exponents of a number's lowest bit. A number with a lower one is zero.
const EXPONENT_MAX: i32 = 16383 - 63;
const EXPONENT_MIN: i32 = -16445 - 63;

/// The greatest decimal exponent. Larger ones count as this one.
const DECIMAL_EXPONENT_MAX: i32 = 20_000;

/// The decimal magnitudes of numbers in range; the magnitude of 1 to 9.99 is 1. Others are refused
/// before a power of ten is computed, which would take milliseconds.
const MAGNITUDES: std::ops::RangeInclusive<i32> = -4970..=4934;

/// The length and the decimal exponent above which a number is long. The exponent admits those that
/// programs print for any number of 64 bits.
const LONG_TEXT: usize = 100;
const LONG_EXPONENT: u32 = 400;

/// The number of digits after the point.
const DIGITS: u32 = 17;

/// A number: `mantissa` times two to the power of `exponent`. The highest bit of `mantissa` is set,
/// unless the number is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LongDouble {
    is_negative: bool,
    mantissa: u64,
    exponent: i32,
}

/// A number as text, or an infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParsedNumber {
    Finite(LongDouble),
    Infinite,
}

impl LongDouble {
    /// Parses a number. Returns `None` if the text is not a number, or if it is out of range.
    pub(crate) fn parse(text: &[u8]) -> Option<ParsedNumber> {
        let (is_negative, unsigned) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity") {
            return Some(ParsedNumber::Infinite);
        }
        if text.len() >= TEXT_MAX {
            return None;
        }
        let at = unsigned.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (number, power) = unsigned.split_at(at.unwrap_or(unsigned.len()));
        let mut power = match power.get(1..) {
            Some(power) => decimal_exponent(power)?,
            None => 0,
        };
        let point = number.iter().position(|byte| *byte == b'.').unwrap_or(number.len());
        let fraction = number.get(point + 1..).unwrap_or_default();
        let digits = [number.get(..point).unwrap_or_default(), fraction].concat();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        power -= i32::try_from(fraction.len()).ok()?;
        let Some(first) = digits.iter().position(|digit| *digit != b'0') else {
            return Some(ParsedNumber::Finite(Self::default()));
        };
        let digits = digits.get(first..)?;
        if !MAGNITUDES.contains(&(i32::try_from(digits.len()).ok()? + power)) {
            return None;
        }
        let value = BigUint::parse_bytes(digits, 10)?;
        let scale = BigUint::from(10_u8).pow(power.unsigned_abs());
        let number = match power < 0 {
            true => Self::quotient(is_negative, &value, &scale),
            false => Self::quotient(is_negative, &(value * scale), &BigUint::from(1_u8)),
        }?;
        // A number that is too small is refused.
        (number.mantissa != 0).then_some(ParsedNumber::Finite(number))
    }

    fn quotient(is_negative: bool, value: &BigUint, divisor: &BigUint) -> Option<Self> {
        let bits = |number: &BigUint| i32::try_from(number.bits()).ok();
        // At least 66 bits: 64, and two by which the last one is rounded.
        let exponent = bits(value)? - bits(divisor)? - 66;
        let (up, down) = ((-exponent).max(0), exponent.max(0));
        let (value, divisor) = (value << up, divisor << down);
        let quotient = &value / &divisor;
        let is_inexact = &quotient * &divisor != value;
        let bits = u128::try_from(quotient).ok()? << 1 | u128::from(is_inexact);
        Self::rounded(is_negative, bits, exponent - 1)
    }

    /// Rounds to 64 bits, to an even number if two are equally near. A result that is too small
    /// becomes zero. Returns `None` if it is too large.
    fn rounded(is_negative: bool, bits: u128, exponent: i32) -> Option<Self> {
        if bits == 0 {
            return Some(Self::default());
        }
        let excess = 64 - i32::try_from(bits.leading_zeros()).ok()?;
        let (mut mantissa, mut exponent) = (bits, exponent + excess);
        if excess <= 0 {
            mantissa <<= excess.unsigned_abs();
        } else {
            mantissa = divided(bits, excess.unsigned_abs());
        }
        if mantissa >> 64 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
        if exponent < EXPONENT_MIN {
            return Some(Self::default());
        }
        let mantissa = u64::try_from(mantissa).ok().filter(|_| exponent <= EXPONENT_MAX)?;
        Some(Self { is_negative, mantissa, exponent })
    }

    /// Adds two numbers. Returns `None` if the sum is too large.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let order = |number: &Self| (number.mantissa != 0, number.exponent, number.mantissa);
        let (great, small) =
            if order(&self) < order(&other) { (other, self) } else { (self, other) };
        if small.mantissa == 0 {
            return Some(great);
        }
        // 62 bits remain below the lowest one of the greater number, and one above its highest.
        let shift = great.exponent.abs_diff(small.exponent);
        let one = u128::from(great.mantissa) << 62;
        let added = u128::from(small.mantissa) << 62;
        let other = added.checked_shr(shift).unwrap_or(0);
        // Bits that are lost decide on which side of a half the sum is.
        let is_inexact = other.checked_shl(shift) != Some(added);
        let other = other | u128::from(is_inexact);
        let sum = if great.is_negative == small.is_negative { one + other } else { one - other };
        Self::rounded(great.is_negative, sum, great.exponent - 62)
    }

    /// Formats the number with at most 17 digits after the point, and no exponent.
    pub(crate) fn text(self) -> String {
        // Below 2^121.
        let scaled = u128::from(self.mantissa) * 10_u128.pow(DIGITS);
        let mut digits = match self.exponent >= 0 {
            true => (BigUint::from(scaled) << self.exponent).to_string(),
            false => divided(scaled, self.exponent.unsigned_abs()).to_string(),
        };
        let places = DIGITS as usize;
        if digits.len() <= places {
            digits.insert_str(0, &"0".repeat(places + 1 - digits.len()));
        }
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        let is_zero = whole == "0" && fraction.is_empty();
        let sign = if self.is_negative && !is_zero { "-" } else { "" };
        format!("{sign}{whole}{point}{fraction}")
    }
}

/// Returns whether computing with the number that a text contains takes long: up to 100 us for each
/// text, and as much for a sum with it.
pub(crate) fn is_long(text: &[u8]) -> bool {
    let at = text.iter().take(LONG_TEXT).position(|byte| matches!(byte, b'e' | b'E'));
    let exponent = at.and_then(|at| decimal_exponent(text.get(at + 1..)?));
    text.len() > LONG_TEXT || exponent.is_some_and(|power| power.unsigned_abs() > LONG_EXPONENT)
}

/// Parses the exponent of a decimal number. One that is out of every range becomes a large one.
fn decimal_exponent(text: &[u8]) -> Option<i32> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let more =
        |sum: i32, digit: &u8| (sum * 10 + i32::from(digit - b'0')).min(DECIMAL_EXPONENT_MAX);
    Some(sign * digits.iter().fold(0, more))
}

/// Divides by a power of two, and rounds to an even number if two are equally near.
fn divided(value: u128, shift: u32) -> u128 {
    let Some(whole) = value.checked_shr(shift) else { return 0 };
    let rest = value - (whole << shift);
    let half = 1 << (shift - 1);
    whole + u128::from(rest > half || rest == half && whole & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(one: &str, other: &str) -> String {
        let number = |text: &str| match LongDouble::parse(text.as_bytes()) {
            Some(ParsedNumber::Finite(number)) => number,
            other => panic!("{text}: {other:?}"),
        };
        number(one).plus(number(other)).map_or_else(|| "none".to_owned(), LongDouble::text)
    }

    /// The expected sums are the replies of Redis 7.
    #[test]
    fn sums_are_those_of_redis() {
        for (one, other, expected) in [
            ("9007199254740993", "1", "9007199254740994"),
            ("100000000000000000", "1", "100000000000000001"),
            ("1e17", "1", "100000000000000001"),
            ("0.1", "0.2", "0.3"),
            ("3.0e3", "200", "3200"),
            ("1000.1", "0.2", "1000.29999999999999999"),
            ("123456.7", "-0.1", "123456.60000000000000142"),
            ("0.3", "-0.3", "0"),
            ("-1e-20", "0", "0"),
            ("1e20", "0", "100000000000000000000"),
            ("18446744073709551615", "1", "18446744073709551616"),
            ("18446744073709551617", "2", "18446744073709551618"),
            ("5e-18", "0", "0"),
            ("1e-17", "4e-18", "0.00000000000000001"),
            ("1e30", "-1e30", "0"),
            ("-2.5", ".25", "-2.25"),
            ("3.", "+4", "7"),
            ("1e-4900", "1", "1"),
            ("-77685994.89707835", "32351e-4942", "-77685994.89707834999717306"),
            ("1e0000000000000000000001", "1", "11"),
            ("12345678901234567890123", "0.5", "12345678901234567889920"),
            ("1", "5.421010862427523e-20", "1"),
            ("-0", "-0", "0"),
            ("0e-20000", "000.5", "0.5"),
            ("0.00001e4937", "-1e4932", "0"),
        ] {
            assert_eq!(sum(one, other), expected, "{one} + {other}");
            assert_eq!(sum(other, one), expected, "{other} + {one}");
        }
        assert_eq!(sum("1.18e4932", "1.18e4932"), "none");
    }

    #[test]
    fn invalid_and_long_texts_are_recognised() {
        for text in [
            "",
            "-",
            ".",
            "e1",
            "1e",
            "1e+",
            "nan",
            " 1",
            "1 ",
            "1.2.3",
            "1e5000",
            "1e-4960",
            "--1",
            "1e20000",
            "1e-20000",
            "0.0001e99999999999",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
        }
        for (text, expected) in
            [("1e-400", false), ("1E401", true), ("2.5", false), ("inf", false), ("1e", false)]
        {
            assert_eq!(is_long(text.as_bytes()), expected, "{text}");
        }
        assert!(!is_long(&[b'1'; LONG_TEXT]) && is_long(&[b'1'; LONG_TEXT + 1]));
        assert_eq!(LongDouble::parse(b"-Infinity"), Some(ParsedNumber::Infinite));
        assert_eq!(LongDouble::parse(&vec![b'1'; TEXT_MAX]), None);
    }
}
