//! Bytes of a message in JSON, which has no type for bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Bytes as text, or as base64 if they are not UTF-8.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bytes<'r> {
    /// UTF-8.
    Text(&'r str),
    /// All other bytes, in base64.
    Base64(String),
}

impl<'r> Bytes<'r> {
    /// Of a message.
    pub fn of(bytes: &'r [u8]) -> Self {
        std::str::from_utf8(bytes).map_or_else(|_| Self::Base64(STANDARD.encode(bytes)), Self::Text)
    }
}
