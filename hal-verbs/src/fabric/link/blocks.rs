//! The traffic of a connection for blocks: writes from lent memory, and messages to and from memory
//! that belongs to the connection.
//!
//! Each receive has a permanent slot in that memory: it is reposted as soon as its message has been
//! read. An inline message is read during the post, from a slot after the receives'. Any other
//! message is copied to the slot of its request, like guards that are not sent inline.

use std::sync::Arc;

use tramontane_core::fabric::ErrorKind;

use super::message_places::{MESSAGE_MEMORY_BYTES, PLACE_BYTES, place_of};
use super::{GUARD_BYTES_MAX, Link, NearEnd, RequestList};
use crate::adapter::{MemoryRegion, Operation, SendBuffers, Target};
use crate::protocol::blocks::{BlockOrder, MESSAGE_BYTES};
use crate::protocol::{Counters, Name};

const _: () = assert!(MESSAGE_BYTES <= PLACE_BYTES && MESSAGE_BYTES <= GUARD_BYTES_MAX);

/// The offset of the message that is sent inline.
const OUTGOING: usize = MESSAGE_MEMORY_BYTES - PLACE_BYTES;

impl Link {
    /// Returns the message of `length` bytes that arrived in a receive; `None` if it is not a
    /// message.
    pub(crate) fn message(&self, name: Name, length: u32) -> Option<[u8; MESSAGE_BYTES]> {
        if usize::try_from(length) != Ok(MESSAGE_BYTES) {
            return None;
        }
        let near = self.near.as_ref()?;
        let mut bytes = [0; MESSAGE_BYTES];
        let place = near.messages.saturating_add(place_of(name));
        let read = near.source.pages().row().read(place, &mut bytes);
        read.ok().map(|()| bytes)
    }

    /// Posts a message.
    pub(crate) fn post_message(
        &mut self,
        buffers: &mut SendBuffers,
        message: &[u8; MESSAGE_BYTES],
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let Self { queue, near, index, .. } = self;
        let near = near.as_mut().ok_or(ErrorKind::Other)?;
        let NearEnd { queue_pair, source, messages, staging, inline_bytes_max, .. } = near;
        let is_inline = MESSAGE_BYTES <= *inline_bytes_max;
        let (memory, offset) = if is_inline {
            (&**source, *messages + OUTGOING)
        } else {
            let staging = staging.as_ref().ok_or(ErrorKind::OutOfRange)?;
            (&*staging.memory, staging.place(queue.slot(queue.posted())))
        };
        memory.pages().writer().apply(offset, message).map_err(|_| ErrorKind::OutOfRange)?;
        counters.block_messages += 1;
        let mut list = RequestList::new(buffers, *index, queue);
        list.push(Operation::Send, Some((memory, offset, MESSAGE_BYTES)), is_inline)?;
        list.post(queue_pair, queue, false, None, counters)
    }

    /// Posts the write of a block, and requests its completion.
    pub(crate) fn post_block(
        &mut self,
        buffers: &mut SendBuffers,
        block: &BlockOrder<Arc<MemoryRegion>>,
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let Self { queue, near, index, .. } = self;
        let NearEnd { queue_pair, .. } = near.as_mut().ok_or(ErrorKind::Other)?;
        let length = usize::try_from(block.length).map_err(|_| ErrorKind::OutOfRange)?;
        let target = Target { address: block.place.address, key: block.place.key };
        let range = (length > 0).then_some((&*block.memory, block.offset, length));
        counters.blocks += 1;
        let mut list = RequestList::new(buffers, *index, queue);
        list.push(Operation::Write(target), range, false)?;
        list.post(queue_pair, queue, true, None, counters)
    }
}
