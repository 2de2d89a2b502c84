//! Values that are kept, and their memory, which is used again.

use std::sync::Arc;

/// The most buffers that wait to be used again.
const SPARE_MAX: usize = 64;

/// The CDR of a value that is kept: one copy for all readers and the topic's store.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    pub(crate) bytes: Vec<u8>,
}

/// Makes payloads, in memory of earlier ones where nobody has those any more.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    spare: Vec<Arc<Payload>>,
}

impl Payloads {
    /// A copy of these bytes.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Arc<Payload> {
        let mut payload = self.spare.pop().unwrap_or_default();
        if let Some(free) = Arc::get_mut(&mut payload) {
            free.bytes.clear();
            free.bytes.extend_from_slice(bytes);
            return payload;
        }
        Arc::new(Payload { bytes: bytes.to_vec() })
    }

    /// A payload that is kept here no more. If nobody else has it, its memory is used again.
    pub(crate) fn give_back(&mut self, payload: Arc<Payload>) {
        if self.spare.len() < SPARE_MAX && Arc::strong_count(&payload) == 1 {
            self.spare.push(payload);
        }
    }
}

/// The value of a message, which is copied once, if anybody keeps it.
pub(crate) struct Incoming<'m> {
    pub(crate) bytes: &'m [u8],
    copy: Option<Arc<Payload>>,
    payloads: &'m mut Payloads,
}

impl<'m> Incoming<'m> {
    pub(crate) fn new(bytes: &'m [u8], payloads: &'m mut Payloads) -> Self {
        Self { bytes, copy: None, payloads }
    }

    /// Of what was kept already.
    pub(crate) fn kept(payload: &'m Arc<Payload>, payloads: &'m mut Payloads) -> Self {
        Self { bytes: &payload.bytes, copy: Some(Arc::clone(payload)), payloads }
    }

    /// The copy to keep.
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
    fn kept_value_is_copied_once() {
        let mut payloads = Payloads::default();
        let mut incoming = Incoming::new(&[5; 3], &mut payloads);
        let (one, other) = (incoming.keep(), incoming.keep());
        assert!(Arc::ptr_eq(&one, &other));
    }
}
