//! The payload of the suite's messages: their name and a space, repeated.

use std::borrow::Cow;

/// Maximum length of a name, in bytes. If a payload has no space within this length, it is shown up
/// to there.
const NAME_BYTES_MAX: usize = 256;

/// Fills a payload with the message's name.
pub(super) fn fill(payload: &mut [u8], name: &str) {
    let pattern = name.bytes().chain(std::iter::once(b' ')).cycle();
    for (byte, value) in payload.iter_mut().zip(pattern) {
        *byte = value;
    }
}

/// Returns the name in a payload, or `None` if it is empty. Bytes that are not a valid name are
/// shown as legibly as possible, because the judge must see what was delivered.
pub(super) fn name(payload: &[u8]) -> Option<Cow<'_, str>> {
    let head = &payload[..payload.len().min(NAME_BYTES_MAX)];
    let end = head.iter().position(|byte| *byte == b' ').unwrap_or(head.len());
    (!payload.is_empty()).then(|| String::from_utf8_lossy(&head[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::protocol::digest;

    #[test]
    fn payload_matches_the_protocol_example() {
        let mut payload = [0; 100];
        fill(&mut payload, "n1/1/0");
        assert_eq!(name(&payload).as_deref(), Some("n1/1/0"));
        assert_eq!(digest(&payload).as_deref(), Some("955396c97e2db725"));
    }

    #[test]
    fn empty_payload_has_no_name_or_digest() {
        assert_eq!((name(&[]), digest(&[])), (None, None));
    }

    #[test]
    fn invalid_message_name_is_shown_lossily() {
        assert_eq!(name(&[0xff, b' ']).as_deref(), Some("\u{fffd}"));
        assert_eq!(name(&[b'x'; 1000]).map(|name| name.len()), Some(NAME_BYTES_MAX));
    }
}
