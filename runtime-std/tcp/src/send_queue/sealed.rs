//! The sealed end of a queue: what waits is copied into records, which are sealed in place, and
//! several of them are sent in one system call.

use std::io::IoSlice;
use std::net::TcpStream;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use tramontane_control::{Cipher, RECORD_HEADER, RECORD_OVERHEAD};

use super::{SLICES_MAX, SendQueue, Sent, TURN_BYTES};

/// The maximum length of a record, with its header and seal. Its content is sealed while it is
/// still in the processor's first cache, into which it was copied.
const RECORD_BYTES: usize = 32 << 10;

/// The length of the buffer of records. A longer one would not stay in the second cache.
const BUFFER_BYTES: usize = 8 * RECORD_BYTES;

/// Records that are sealed, and not sent yet.
#[derive(Debug)]
pub(super) struct SealedRecords {
    bytes: Box<[u8]>,
    /// The part that has not been sent.
    from: usize,
    to: usize,
}

impl SealedRecords {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; BUFFER_BYTES].into(), from: 0, to: 0 }
    }

    pub(super) const fn is_pending(&self) -> bool {
        self.from < self.to
    }

    pub(super) const fn clear(&mut self) {
        (self.from, self.to) = (0, 0);
    }

    /// Sends as much as the socket accepts. Returns true if nothing is left.
    fn send(&mut self, stream: &TcpStream) -> Result<bool, Errno> {
        if self.is_pending() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let rest = self.bytes.get(self.from..self.to).ok_or(Errno::FAULT)?;
            self.from += send(stream, rest, flags)?;
        }
        Ok(!self.is_pending())
    }
}

impl SendQueue {
    pub(super) fn flush_sealed(
        &mut self,
        stream: &TcpStream,
        cipher: &mut Cipher,
        mut gone: impl FnMut(Sent),
    ) -> Result<bool, Errno> {
        let Some(mut sealed) = self.sealed.take() else { return Err(Errno::FAULT) };
        let mut total = 0;
        let mut turn = || {
            while sealed.send(stream)? {
                if total >= TURN_BYTES {
                    return Ok(true);
                }
                self.seal(&mut sealed, cipher, &mut gone)?;
                if !sealed.is_pending() {
                    return Ok(true);
                }
                total += sealed.to;
            }
            Ok(false)
        };
        let has_room = turn();
        self.sealed = Some(sealed);
        has_room
    }

    /// Seals as much of what waits as there is room for. Nothing is left in the buffer.
    fn seal(
        &mut self,
        sealed: &mut SealedRecords,
        cipher: &mut Cipher,
        gone: &mut impl FnMut(Sent),
    ) -> Result<(), Errno> {
        sealed.clear();
        for record in sealed.bytes.chunks_exact_mut(RECORD_BYTES) {
            let content = record.get_mut(RECORD_HEADER..).ok_or(Errno::FAULT)?;
            let room = RECORD_BYTES - RECORD_OVERHEAD;
            let count = self.gather(content.get_mut(..room).ok_or(Errno::FAULT)?, gone)?;
            if count == 0 {
                break;
            }
            let record = record.get_mut(..RECORD_OVERHEAD + count).ok_or(Errno::FAULT)?;
            cipher.seal(record).map_err(|_| Errno::FAULT)?;
            sealed.to += record.len();
            if count < room {
                break;
            }
        }
        Ok(())
    }

    /// Copies as much of what waits as there is room for. Returns the number of bytes.
    fn gather(&mut self, into: &mut [u8], gone: &mut impl FnMut(Sent)) -> Result<usize, Errno> {
        let mut filled = 0;
        while let Some(mut free) = into.get_mut(filled..).filter(|free| !free.is_empty()) {
            self.begin_what_waits();
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let (count, _) = self.slices(&mut slices).ok_or(Errno::FAULT)?;
            let before = filled;
            for slice in &slices[..count] {
                let (part, rest) = free.split_at_mut(slice.len().min(free.len()));
                part.copy_from_slice(&slice[..part.len()]);
                filled += part.len();
                free = rest;
            }
            self.take(filled - before, gone);
            if filled == before {
                break;
            }
        }
        Ok(filled)
    }
}
