//! Replies as bytes.

use std::io::Write as _;

/// The replies of one run of requests, up to a limit.
///
/// A member that did not receive the requests applies them too, but nobody there reads the replies.
/// So nothing is kept there.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    bytes: Vec<u8>,
    is_kept: bool,
    bytes_max: usize,
    is_too_large: bool,
}

impl Reply {
    /// Creates replies that are kept up to this number of bytes.
    pub(crate) fn kept(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), is_kept: true, bytes_max, is_too_large: false }
    }

    /// Creates replies of which nothing is kept.
    pub(crate) fn discarded() -> Self {
        Self::default()
    }

    /// Returns whether anybody reads the replies.
    pub(crate) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Returns whether the replies exceeded the limit, after which none is kept.
    pub(crate) const fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds bytes that are replies already.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        if !self.is_kept {
            return;
        }
        if self.bytes.len() + bytes.len() > self.bytes_max {
            self.is_kept = false;
            self.is_too_large = true;
            self.bytes = Vec::new();
            return;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.raw(b"+");
        self.raw(text.as_bytes());
        self.raw(b"\r\n");
    }

    /// Adds an error. Line ends in the text become spaces.
    pub(crate) fn error(&mut self, text: &str) {
        self.raw(b"-");
        self.raw(text.replace(['\r', '\n'], " ").as_bytes());
        self.raw(b"\r\n");
    }

    pub(crate) fn nil(&mut self) {
        self.raw(b"$-1\r\n");
    }

    pub(crate) fn nil_array(&mut self) {
        self.raw(b"*-1\r\n");
    }

    pub(crate) fn integer(&mut self, value: i64) {
        self.head(b':', value);
    }

    /// Adds a number of elements or bytes as an integer.
    pub(crate) fn count(&mut self, value: usize) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// Adds the integer 1 or 0.
    pub(crate) fn flag(&mut self, value: bool) {
        self.integer(i64::from(value));
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        self.raw(bytes);
        self.raw(b"\r\n");
    }

    pub(crate) fn bulk_or_nil(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.nil(),
        }
    }

    /// Begins an array, whose elements follow.
    pub(crate) fn array(&mut self, length: usize) {
        self.head(b'*', i64::try_from(length).unwrap_or(i64::MAX));
    }

    /// Adds an array of bulk strings.
    pub(crate) fn bulks<'b>(&mut self, items: impl ExactSizeIterator<Item = &'b [u8]>) {
        self.array(items.len());
        self.bulks_of_array(items);
    }

    /// Adds the elements of an array that has begun, as far as anybody reads them.
    pub(crate) fn bulks_of_array<'b>(&mut self, items: impl Iterator<Item = &'b [u8]>) {
        for item in items {
            if !self.is_kept {
                return;
            }
            self.bulk(item);
        }
    }

    fn head(&mut self, kind: u8, value: i64) {
        if !self.is_kept {
            return;
        }
        let mut head = [0_u8; 24];
        let mut rest = &mut head[..];
        // The longest number has 20 characters.
        let _ = write!(rest, "{}{value}\r\n", char::from(kind));
        let left = rest.len();
        let used = head.len() - left;
        self.raw(&head[..used]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_encoded_by_type() {
        let mut reply = Reply::kept(1000);
        reply.integer(i64::MIN);
        reply.bulk(b"ab");
        reply.error("ERR two\r\nlines");
        assert_eq!(reply.into_bytes(), b":-9223372036854775808\r\n$2\r\nab\r\n-ERR two  lines\r\n");
    }

    #[test]
    fn replies_above_limit_are_dropped() {
        let mut reply = Reply::kept(10);
        reply.ok();
        reply.bulk(b"0123456789");
        assert!(reply.is_too_large() && !reply.is_kept());
        assert_eq!(reply.len(), 0);
        let mut nobody = Reply::discarded();
        nobody.ok();
        assert_eq!((nobody.len(), nobody.is_too_large()), (0, false));
    }
}
