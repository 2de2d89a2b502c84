//! Memory for kept values, which is reused.

use std::sync::Arc;

/// Maximum number of buffers kept for reuse.
const SPARE_MAX: usize = 64;

/// The CDR of a kept value: one copy for all readers and the topic's store.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    pub(crate) bytes: Vec<u8>,
}

/// Creates payloads, reusing the memory of earlier ones that are no longer referenced.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    spare: Vec<Arc<Payload>>,
}

impl Payloads {
    /// Copies bytes into a payload.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Arc<Payload> {
        let mut payload = self.spare.pop().unwrap_or_default();
        if let Some(free) = Arc::get_mut(&mut payload) {
            free.bytes.clear();
            free.bytes.extend_from_slice(bytes);
            return payload;
        }
        Arc::new(Payload { bytes: bytes.to_vec() })
    }

    /// Returns a payload that is no longer kept. If there is no other reference to it, its memory
    /// is reused.
    pub(crate) fn give_back(&mut self, payload: Arc<Payload>) {
        if self.spare.len() < SPARE_MAX && Arc::strong_count(&payload) == 1 {
            self.spare.push(payload);
        }
    }
}

/// The value of a message. It is copied once, if it is kept at all.
pub(crate) struct IncomingValue<'m> {
    pub(crate) bytes: &'m [u8],
    copy: Option<Arc<Payload>>,
    payloads: &'m mut Payloads,
}

impl<'m> IncomingValue<'m> {
    pub(crate) fn new(bytes: &'m [u8], payloads: &'m mut Payloads) -> Self {
        Self { bytes, copy: None, payloads }
    }

    /// Creates an incoming value that is already kept.
    pub(crate) fn kept(payload: &'m Arc<Payload>, payloads: &'m mut Payloads) -> Self {
        Self { bytes: &payload.bytes, copy: Some(Arc::clone(payload)), payloads }
    }

    /// Returns the copy to keep.
    pub(crate) fn keep(&mut self) -> Arc<Payload> {
        let Self { bytes, copy, payloads } = self;
        Arc::clone(copy.get_or_insert_with(|| payloads.copy(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreferenced_memory_is_reused() {
        let mut payloads = Payloads::default();
        let first = payloads.copy(&[1; 100]);
        let (place, reader) = (first.bytes.as_ptr(), Arc::clone(&first));
        payloads.give_back(first);
        let second = payloads.copy(&[2; 100]);
        assert_ne!(second.bytes.as_ptr(), place, "a reader has it");
        payloads.give_back(reader);
        let third = payloads.copy(&[3; 50]);
        assert_eq!((third.bytes.as_ptr(), &third.bytes[..]), (place, &[3; 50][..]));
        assert_eq!(second.bytes, [2; 100]);
    }

    #[test]
    fn kept_payload_is_copied_only_once() {
        let mut payloads = Payloads::default();
        let mut incoming = IncomingValue::new(&[5; 3], &mut payloads);
        let (one, other) = (incoming.keep(), incoming.keep());
        assert!(Arc::ptr_eq(&one, &other));
    }
}
