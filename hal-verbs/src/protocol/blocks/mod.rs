//! Blocks between two members: decides which end may write which bytes to which address and in
//! which order, and what is reported. This module needs no device: the fabric carries the output of
//! an [`Exchange`] over one connection, and passes received messages to it.
//!
//! ```text
//! receiver  --Offer(channel, serial, place)-->  sender      a receive is posted
//! receiver  <==== the block, a write to that place ====     as soon as there is an offer, straight from its memory
//! receiver  <--Written(channel, serial, number, length)--   once the write is acknowledged
//! ```
//!
//! | message | meaning |
//! |---|---|
//! | `Offer` | the block with this serial may be written to this address |
//! | `Written` | the block has arrived completely |
//! | `Asked` | asks whether there is a receive with this serial, for which a block waits |
//! | `Refused` | there is no such receive, so the block's sender has broken the protocol |
//! | `Over` | the sender writes nothing more on this channel, and accepts nothing |
//! | `Credit` | only what every message says: how many messages were processed |
//!
//! # Reasons
//! - *One connection for all channels, and an address for each block.* RDMC posts receives and
//!   sends, with a connection for each pair of members in a group (4.2). If channels shared
//!   receives, a block of one channel would take the receive of another channel, or wait for it.
//!   With a connection per channel, every group would cost each pair a queue pair, an entry in the
//!   completion queue, and kernel calls from the thread that serves all groups. A write needs
//!   neither. Its price is that any holder of the key can write to memory that receives, until that
//!   memory is deregistered. As with rows, that isolates faults but does not stop attackers.
//! - *`Written` follows the acknowledgement*, not the write. A sender that closes its channel may
//!   change its memory while its NIC still reads it, and the result must not be mistaken for a
//!   block. `Written` uses the same connection, so the block is visible before it.
//! - *`Asked`*: an offer may still be in flight when the protocol above learns of it through
//!   another channel. Only the receiver can distinguish this case from a block without a receive.
//! - *`Over`, in both directions*, bounds how long a closed channel's memory is in use: messages
//!   and writes keep their order, so nothing lands after `Over`.
//!
//! # Invariants
//! - A peer's bytes are checked before they are used. A peer that sends a message that no correct
//!   member sends is lost.
//! - On a channel, blocks are written, announced and reported in the order in which they were sent.
//! - There are never more messages in flight than receives for them (`credits`).

mod channel;
mod credits;
mod event_queue;
mod exchange;
mod message;
#[cfg(test)]
mod model;
#[cfg(test)]
mod one_end;

pub(crate) use channel::{Block, RECEIVES_MAX, Receive, SENDS_MAX};
pub(crate) use credits::{Credits, MESSAGES_MAX};
pub(crate) use event_queue::EventQueue;
pub(crate) use exchange::{BlockOrder, Exchange};
pub(crate) use message::{Envelope, MESSAGE_BYTES};

/// Number of channels per view, the same as in the runtime's other fabrics.
pub(crate) const CHANNELS: u16 = 1024;
