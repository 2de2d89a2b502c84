//! The marks that identify a message.

/// Distance between two marks: one per page.
const MARK_INTERVAL: usize = 4096;

/// Writes a message's number into each of its pages, so that each message differs from the previous
/// one at little cost.
pub(super) fn mark(message: &mut [u8], number: u64) {
    message.iter_mut().step_by(MARK_INTERVAL).for_each(|byte| *byte = number as u8);
}

/// Returns whether every page has the number.
pub(super) fn is_marked(message: &[u8], number: u64) -> bool {
    message.iter().step_by(MARK_INTERVAL).all(|byte| *byte == number as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_of_another_message_is_detected() {
        let mut message = vec![0; 3 * MARK_INTERVAL + 1];
        mark(&mut message, 7);
        assert!(is_marked(&message, 7) && !is_marked(&message, 8));
        message[2 * MARK_INTERVAL] = 6;
        assert!(!is_marked(&message, 7));
        assert!(is_marked(&[], 1));
    }
}
