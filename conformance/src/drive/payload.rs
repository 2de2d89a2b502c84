//! Payloads of messages, whose digests are known in advance.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Returns the digest of the message's payload: the first 16 hexadecimal digits of SHA-256 over its
/// name and a space, repeated and cut to size. For an empty message, returns `None`.
pub(super) fn digest(message: &str, bytes: u64) -> Option<String> {
    if bytes == 0 {
        return None;
    }
    let mut left = bytes;
    let unit = [message.as_bytes(), b" "].concat();
    let mut hash = Sha256::new();
    while left > 0 {
        let part = unit.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(&unit);
        hash.update(part);
        left -= part.len() as u64;
    }
    let mut text = String::with_capacity(16);
    for byte in &hash.finalize()[..8] {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_digest_matches_the_protocol_example() {
        assert_eq!(digest("n1/1/0", 100).as_deref(), Some("955396c97e2db725"));
    }

    #[test]
    fn empty_message_has_no_digest() {
        assert_eq!(digest("n1/1/0", 0), None);
    }
}
