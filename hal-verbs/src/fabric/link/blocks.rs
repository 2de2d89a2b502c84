//! What a connection for blocks carries: writes from lent memory, and messages from and into memory
//! of its own.
//!
//! A receive has a place in that memory for ever: it is posted again as soon as its message was
//! read. A message that goes is copied to the place of its request, as guards are that do not go
//! inline.

use std::io;
use std::sync::Arc;

use super::{GUARD_BYTES_MAX, Link, Purpose, Request, post_request};
use crate::ffi::{MemoryRegion, Operation, SendBuffers, Target};
use crate::protocol::blocks::{MESSAGE_BYTES, MESSAGES_MAX, Order};
use crate::protocol::{Counters, Name};

/// Between the places of two messages: a cache line.
const PLACE_BYTES: usize = 64;
const _: () = assert!(MESSAGE_BYTES <= PLACE_BYTES && MESSAGE_BYTES <= GUARD_BYTES_MAX);

/// Bytes that a connection for blocks needs for the messages that come.
pub(crate) fn message_memory_bytes() -> usize {
    usize::try_from(MESSAGES_MAX).unwrap_or(0) * PLACE_BYTES
}

impl Link {
    /// The message of so many bytes that came into a receive; none if that is no message.
    pub(crate) fn message(&self, name: Name, length: u32) -> Option<[u8; MESSAGE_BYTES]> {
        if usize::try_from(length) != Ok(MESSAGE_BYTES) {
            return None;
        }
        let mut bytes = [0; MESSAGE_BYTES];
        let read = self.source.pages().row().read(place_of(name), &mut bytes);
        read.ok().map(|()| bytes)
    }

    /// Posts a message.
    pub(crate) fn post_message(
        &mut self,
        buffers: &mut SendBuffers,
        message: &[u8; MESSAGE_BYTES],
        counters: &mut Counters,
    ) -> io::Result<()> {
        let Self { queue_pair, queue, staged, index, inline_bytes_max, .. } = self;
        let staged = staged.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
        let offset = queue.slot(queue.posted()) * GUARD_BYTES_MAX;
        staged.pages().writer().apply(offset, message).map_err(|_| io::ErrorKind::InvalidInput)?;
        let request = Request {
            operation: Operation::Send,
            range: Some((staged, offset, MESSAGE_BYTES)),
            is_inline: MESSAGE_BYTES <= *inline_bytes_max,
            token: None,
            is_signalled: false,
        };
        counters.block_messages += 1;
        post_request(queue_pair, queue, *index, buffers, request, counters)
    }

    /// Posts the write of a block, and asks for its completion.
    pub(crate) fn post_block(
        &mut self,
        buffers: &mut SendBuffers,
        block: &Order<Arc<MemoryRegion>>,
        counters: &mut Counters,
    ) -> io::Result<()> {
        let Self { queue_pair, queue, index, .. } = self;
        let length = usize::try_from(block.length).map_err(|_| io::ErrorKind::InvalidInput)?;
        let request = Request {
            operation: Operation::Write(Target {
                address: block.place.address,
                key: block.place.key,
            }),
            range: (length > 0).then_some((&*block.memory, block.offset, length)),
            is_inline: false,
            token: None,
            is_signalled: true,
        };
        counters.blocks += 1;
        post_request(queue_pair, queue, *index, buffers, request, counters)
    }
}

/// Where a receive puts what comes: a message on a connection for blocks, nothing elsewhere.
pub(super) fn receive_range(
    purpose: Purpose,
    source: &MemoryRegion,
    name: Name,
) -> Option<(&MemoryRegion, usize, usize)> {
    (purpose == Purpose::Blocks).then(|| (source, place_of(name), MESSAGE_BYTES))
}

/// Where the message of a receive lies.
fn place_of(name: Name) -> usize {
    let number = usize::try_from(name.number_from(0)).unwrap_or(usize::MAX);
    number.saturating_mul(PLACE_BYTES)
}
