//! Patterns of names: `*`, `?`, sets in brackets, and `\` before a character.

/// The number of steps for a name that is matched without a limit of the caller.
const STEPS_OF_NAME: u64 = 1_000_000;

/// The number of steps of one request: some tenths of a second.
pub(crate) const STEPS_OF_REQUEST: u64 = 20_000_000;

/// Returns whether a name matches a pattern. A name that would take a million steps does not.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    matches_within(pattern, name, &mut { STEPS_OF_NAME }).unwrap_or(false)
}

/// Returns whether a name matches a pattern, and subtracts the steps that this took from `steps`.
/// Returns `None` if they do not suffice. At most the product of the lengths is needed.
pub(crate) fn matches_within(pattern: &[u8], name: &[u8], steps: &mut u64) -> Option<bool> {
    let (mut p, mut n) = (0, 0);
    // The place after the last star, and the place in the name at which its rest begins.
    let mut star: Option<(usize, usize)> = None;
    loop {
        *steps = steps.checked_sub(1)?;
        match pattern.get(p) {
            Some(b'*') if p + 1 == pattern.len() => return Some(true),
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            None if n == name.len() => return Some(true),
            Some(_) if n < name.len() => {
                let (is_one, length) = one(pattern.get(p..).unwrap_or_default(), name[n]);
                // A set takes as many further steps as it has bytes.
                *steps = steps.checked_sub(length.saturating_sub(1) as u64)?;
                if is_one {
                    p += length;
                    n += 1;
                    continue;
                }
            }
            _ => {}
        }
        match star {
            Some((after, from)) if from < name.len() => {
                star = Some((after, from + 1));
                (p, n) = (after, from + 1);
            }
            _ => return Some(false),
        }
    }
}

/// Returns whether the pattern's first element matches a byte, and the element's length.
fn one(pattern: &[u8], byte: u8) -> (bool, usize) {
    match pattern {
        [b'?', ..] => (true, 1),
        [b'\\', escaped, ..] => (*escaped == byte, 2),
        [b'[', rest @ ..] => {
            let (is_negated, rest) = match rest {
                [b'^', rest @ ..] => (true, rest),
                _ => (false, rest),
            };
            let (is_in, length) = in_set(rest, byte);
            (is_in != is_negated, 1 + usize::from(is_negated) + length)
        }
        [literal, ..] => (*literal == byte, 1),
        [] => (false, 0),
    }
}

/// Returns whether a byte is in a set, and the length of the set with its closing bracket. A set
/// that is not closed ends with the pattern.
fn in_set(set: &[u8], byte: u8) -> (bool, usize) {
    let (mut at, mut is_in) = (0, false);
    loop {
        match set.get(at..).unwrap_or_default() {
            [] => return (is_in, at),
            [b']', ..] => return (is_in, at + 1),
            [b'\\', escaped, ..] => {
                is_in |= *escaped == byte;
                at += 2;
            }
            [low, b'-', high, ..] => {
                is_in |= (*low.min(high)..=*low.max(high)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                is_in |= *literal == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("h?llo", "hello", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            (r"h\*llo", "h*llo", true),
            (r"h\*llo", "hello", false),
            ("a*b*c", "a__b__b_c", true),
            ("a*b*c", "a__c__b", false),
            ("[a", "a", true),
            ("a", "ab", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_bounded_time() {
        let (pattern, name) = ("a*".repeat(200) + "b", "a".repeat(2000));
        assert!(!matches(pattern.as_bytes(), name.as_bytes()));
        let (long, sets) = ("a".repeat(200_000), format!("[{}]*", "b".repeat(100_000)).repeat(2));
        for pattern in [format!("*{}b", "a".repeat(5000)), format!("*{sets}")] {
            let mut steps = STEPS_OF_REQUEST;
            assert_eq!(matches_within(pattern.as_bytes(), long.as_bytes(), &mut steps), None);
        }
    }
}
