//! The work that every experiment does on a message: writing each byte in place, and reading each
//! byte at delivery.
//!
//! Probe and protocol share these functions, so that neither benefits from a cheaper message.

/// Fills a message with bytes that depend on its number.
#[inline]
pub fn write(payload: &mut [u8], number: u64) {
    payload.fill(number as u8);
}

/// Reads every byte. The sum keeps the reads from being optimised away.
#[inline]
pub fn read(payload: &[u8]) -> u64 {
    let (words, rest) = payload.as_chunks::<8>();
    let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}
