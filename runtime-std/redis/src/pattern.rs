//! Patterns of names: `*`, `?`, sets in brackets, and `\` before a character.

/// Returns whether a name matches a pattern. Takes at most the product of their lengths.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // The place after the last star, and the place in the name at which its rest begins.
    let mut star: Option<(usize, usize)> = None;
    loop {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            None if n == name.len() => return true,
            Some(_) if n < name.len() => {
                if let Some(length) = one(pattern.get(p..).unwrap_or_default(), name[n]) {
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
            _ => return false,
        }
    }
}

/// Returns the length of the pattern's first element if that matches a byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', rest @ ..] => {
            let (is_negated, rest) = match rest {
                [b'^', rest @ ..] => (true, rest),
                _ => (false, rest),
            };
            let (is_in, length) = in_set(rest, byte);
            (is_in != is_negated).then_some(1 + usize::from(is_negated) + length)
        }
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
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
    }
}
