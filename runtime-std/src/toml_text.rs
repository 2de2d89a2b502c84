//! TOML files whose errors name the line, in words that an operator knows.

use serde::de::DeserializeOwned;

/// A place at which a file is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct WrongLine {
    /// The number of the line, from 1.
    pub line: usize,
    /// The reason.
    pub text: String,
}

/// The names of number types in the reasons of the parser.
const NUMBERS: [&str; 7] = ["u8", "u16", "u32", "u64", "usize", "i64", "i128"];

/// Parses a file.
///
/// # Errors
/// Returns the first line that is wrong.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, WrongLine> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let reason = error.message().trim_end().replace('\n', " ");
        let words = NUMBERS.iter().fold(reason, |reason, number| {
            reason
                .replace(&format!("expected {number}"), "expected a whole number in its range")
                .replace(&format!(" as {number}"), "")
        });
        WrongLine { line: before.matches('\n').count() + 1, text: words }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct File {
        _port: u16,
    }

    #[test]
    fn error_names_line_and_no_type() {
        let wrong = |text: &str| parse::<File>(text).expect_err("it is wrong").to_string();
        let error = wrong("# a comment\n_port = \"x\"\n");
        assert_eq!(
            error,
            "line 2: invalid type: string \"x\", expected a whole number in its range"
        );
        assert!(wrong("_port = 70000").ends_with("expected a whole number in its range"));
        assert!(wrong("_port = [1\n").starts_with("line 1: "));
    }
}
