//! Records from one peer: they are opened in the buffer into which they were read, and their
//! content is stored from there.
//!
//! An incomplete header or cell at the end of a record's content waits for the next record. It is
//! moved to just before that record's content, over what lies between the two: a seal and a header,
//! and bytes that have been processed.

use std::net::TcpStream;

use tramontane_control::{Cipher, RECORD_HEADER, RECORD_MAX};

use super::super::frame::{HEADER, OPEN_REST};
use super::super::notice::Notice;
use super::super::stream_end::StreamEnd;
use super::{Incoming, received};

/// The maximum number of bytes that wait for the next record: an incomplete header.
const WAITING_MAX: usize = HEADER + OPEN_REST;

/// The length of the buffer: room for the bytes that wait, and for a few records.
pub(super) const SEALED_READ_MAX: usize = WAITING_MAX + 4 * RECORD_MAX;

impl Incoming {
    /// Reads encrypted bytes once, and decrypts all complete records in them. Returns the number of
    /// bytes that arrived, and whether there are no more.
    pub(super) fn read_sealed(
        &mut self,
        stream: &TcpStream,
        cipher: &mut Cipher,
        notify: &mut impl FnMut(Notice),
    ) -> Result<(usize, bool), StreamEnd> {
        self.make_room()?;
        let room = self.buffer.get_mut(self.sealed.end..).unwrap_or_default();
        let length = room.len();
        let Some(count) = received(rustix::io::read(stream, room))? else { return Ok((0, true)) };
        self.sealed.end += count;
        self.open_records(cipher, notify)?;
        Ok((count, count < length))
    }

    /// Moves an incomplete record, and the bytes that wait for it, to the start of the buffer.
    fn make_room(&mut self) -> Result<(), StreamEnd> {
        let sealed = self.sealed.clone();
        self.sealed = WAITING_MAX..WAITING_MAX + sealed.len();
        if sealed.start > WAITING_MAX {
            self.wait_before(WAITING_MAX)?;
            self.buffer.copy_within(sealed, WAITING_MAX);
        }
        Ok(())
    }

    /// Moves the bytes that wait, so that they end at a place.
    fn wait_before(&mut self, end: usize) -> Result<(), StreamEnd> {
        let waiting = self.end - self.start;
        let start =
            end.checked_sub(waiting).ok_or(StreamEnd::Malformed("a frame that never ends"))?;
        self.buffer.copy_within(self.start..self.end, start);
        (self.start, self.end) = (start, end);
        Ok(())
    }

    fn open_records(
        &mut self,
        cipher: &mut Cipher,
        notify: &mut impl FnMut(Notice),
    ) -> Result<(), StreamEnd> {
        while let Some((header, rest)) = self
            .buffer
            .get_mut(self.sealed.clone())
            .and_then(<[u8]>::split_first_chunk_mut::<RECORD_HEADER>)
        {
            let length = usize::from(u16::from_le_bytes(*header));
            let Some(record) = rest.get_mut(..length) else { break };
            let forged = |_| StreamEnd::Malformed("a record that cannot be decrypted");
            let content = cipher.open(record).map_err(forged)?.len();
            let from = self.sealed.start + RECORD_HEADER;
            self.sealed.start = from + length;
            self.wait_before(from)?;
            self.end += content;
            self.understand(notify)?;
        }
        Ok(())
    }
}
