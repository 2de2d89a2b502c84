//! Makes untrusted text safe to display.
//!
//! A history, an adapter or a file name may contain any text. On a terminal, control characters
//! move the cursor; everywhere, bidirectional marks make text look like other text. Both are
//! removed.

use std::fmt::Write as _;

/// Returns the text with invisible characters spelt out, cut to `characters_max` characters and a
/// mark.
#[must_use]
pub fn printable(text: &str, characters_max: usize) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == characters_max {
            shown.push('…');
            break;
        }
        if invisible(character) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", character as u32);
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Returns the text without its middle, where names differ least, if it has more than
/// `characters_max` characters.
#[must_use]
pub fn shortened(text: &str, characters_max: usize) -> String {
    let shown = printable(text, usize::MAX);
    let count = shown.chars().count();
    if count <= characters_max {
        return shown;
    }
    let tail = characters_max / 2;
    let head = characters_max.saturating_sub(tail + 1);
    shown.chars().take(head).chain(['…']).chain(shown.chars().skip(count - tail)).collect()
}

/// Returns whether a character is invisible but changes the text around it.
fn invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_spelt_out() {
        assert_eq!(printable("a\u{1b}[2J\n\u{202e}b", 80), "a\\u{1b}[2J\\u{a}\\u{202e}b");
        assert_eq!(printable("Größe ✓", 80), "Größe ✓");
    }

    #[test]
    fn long_text_is_cut_with_a_mark() {
        assert_eq!(printable("abcdef", 3), "abc…");
        assert_eq!(printable("abc", 3), "abc");
        assert_eq!(shortened("n0/1/123456789", 9), "n0/1…6789");
        assert_eq!(shortened("n0/1/1234", 9), "n0/1/1234");
        assert_eq!(shortened("é".repeat(50).as_str(), 5), "éé…éé");
    }
}
