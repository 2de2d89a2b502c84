//! Requests as lines of words, which people type. Words may be in quotes, as in Redis.

/// Returns the words of a line, or `None` if a quote is not closed, or not followed by a space.
pub(super) fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut rest) = (Vec::new(), line.trim_ascii_start());
    while !rest.is_empty() {
        let (word, after) = word(rest)?;
        words.push(word);
        rest = after.trim_ascii_start();
    }
    Some(words)
}

/// Reads one word. Returns it, and what follows.
fn word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        rest = match rest {
            [] => return Some((word, rest)),
            [space, ..] if space.is_ascii_whitespace() => return Some((word, rest)),
            [quote @ (b'"' | b'\''), quoted @ ..] => {
                let after = unquote(*quote, quoted, &mut word)?;
                let is_end = after.first().is_none_or(u8::is_ascii_whitespace);
                return is_end.then_some((word, after));
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

/// Adds what is in quotes to a word, and returns what follows the closing quote.
fn unquote<'l>(quote: u8, mut rest: &'l [u8], word: &mut Vec<u8>) -> Option<&'l [u8]> {
    let has_escapes = quote == b'"';
    loop {
        let (byte, after) = match rest {
            [closing, after @ ..] if *closing == quote => return Some(after),
            [b'\\', b'\'', after @ ..] if !has_escapes => (b'\'', after),
            [b'\\', b'x', high, low, after @ ..] if has_escapes && are_hex(*high, *low) => {
                (hex(*high) << 4 | hex(*low), after)
            }
            [b'\\', escaped, after @ ..] if has_escapes => {
                let byte = match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                };
                (byte, after)
            }
            [byte, after @ ..] => (*byte, after),
            [] => return None,
        };
        word.push(byte);
        rest = after;
    }
}

const fn are_hex(high: u8, low: u8) -> bool {
    high.is_ascii_hexdigit() && low.is_ascii_hexdigit()
}

/// Returns the value of a hexadecimal digit.
const fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_are_read_as_in_redis() {
        for (line, expected) in [
            (r#"SET k "two words""#, vec!["SET", "k", "two words"]),
            (r#" SET  k '' "" "#, vec!["SET", "k", "", ""]),
            (r#""\x41\n\r\t\b\a\"\\\q""#, vec!["A\n\r\t\u{8}\u{7}\"\\q"]),
            (r#""\x4z""#, vec!["x4z"]),
            (r"'it\'s \n'", vec![r"it's \n"]),
            (r#"a"b c""#, vec!["ab c"]),
            (r"a\n", vec![r"a\n"]),
            ("", vec![]),
        ] {
            let expected: Vec<Vec<u8>> =
                expected.iter().map(|word| word.as_bytes().into()).collect();
            assert_eq!(words(line.as_bytes()), Some(expected), "{line}");
        }
        for line in [r#"SET k "open"#, r#""closed"early"#, "'open", r#""\"#, r#"a"b"c"#, r"'\'"] {
            assert_eq!(words(line.as_bytes()), None, "{line}");
        }
    }
}
