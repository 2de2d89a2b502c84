//! What a message carries, and what is said of it. CPG adds no name of its own: the payload is all
//! there is.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The payload of `message`: its name and a space, repeated and cut.
pub fn payload(message: &str, bytes: usize) -> Vec<u8> {
    let text = format!("{message} ");
    text.bytes().cycle().take(bytes).collect()
}

/// Which message a payload is, or nothing if it is empty. What is no text is shown as well as can
/// be.
pub fn message_of(payload: &[u8]) -> Option<String> {
    let name = payload.split(|byte| *byte == b' ').next()?;
    (!payload.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// The digest that the protocol asks for: the first 16 digits of SHA-256.
pub fn digest(payload: &[u8]) -> String {
    hexadecimal(&Sha256::digest(payload)[..8])
}

/// Bytes as lower-case digits.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_protocol_has_its_digest() {
        assert_eq!(digest(&payload("n1/1/0", 100)), "955396c97e2db725");
    }

    #[test]
    fn a_message_is_found_again_and_an_empty_one_has_no_name() {
        assert_eq!(message_of(&payload("n1/1/0", 7)).as_deref(), Some("n1/1/0"));
        assert_eq!(message_of(&payload("n1/1/0", 0)), None);
    }
}
