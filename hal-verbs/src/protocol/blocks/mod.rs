//! Blocks between two members: which end may write where, in which order, and what is reported.
//! Without a device: the fabric carries what comes out of an [`Exchange`] over one connection, and
//! hands it what comes in.
//!
//! ```text
//! receiver  --Offer(channel, serial, place)-->  sender      a receive is posted
//! receiver  <==== the block, a write to that place ====     as soon as there is an offer, straight from its memory
//! receiver  <--Written(channel, serial, number, length)--   once the write is acknowledged
//! ```
//!
//! | message | says |
//! |---|---|
//! | `Offer` | the block of that serial may be written to that place |
//! | `Written` | it is there, whole |
//! | `Asked` | a block waits for the receive of that serial: is there one? |
//! | `Refused` | there is none: the block's sender has no business with it |
//! | `Over` | nothing more is written on this channel from here, and nothing is taken |
//! | `Credit` | nothing, but what every message says: how many were taken |
//!
//! # Why so
//! - *One connection for all channels, and a place for each block.* RDMC posts receives and sends,
//!   with a connection for each pair of a group (4.2). With receives that channels share, a block
//!   of one would take the receive of another, or wait for it; with a connection a channel, every
//!   group would cost each pair a queue pair, its place in the completion queue, and calls to the
//!   kernel from the thread that serves all groups. A write needs neither; its price is that memory
//!   which receives can be written to by any holder of its key, until it is deregistered. As with
//!   rows, that keeps faults apart, and not enemies.
//! - *`Written` follows the acknowledgement*, and not the write at once: a sender that closes its
//!   channel may change its memory while its adapter still reads it, and what came of that must not
//!   be taken for a block. It goes over the same connection, so the block is visible before it.
//! - *`Asked`*: an offer may still be on its way when the protocol above knows of it by another.
//!   Only the receiver can tell that from a block that nobody waits for.
//! - *`Over`, both ways*, bounds how long a closed channel's memory is in use: messages and writes
//!   keep their order, so behind it nothing lands.
//!
//! # Invariants
//! - A peer's bytes are compared with what can be before anything is made of them: what no correct
//!   member sends loses it.
//! - On a channel, blocks are written, told of, and reported in the order in which they were sent.
//! - Messages under way are never more than the receives that wait for them (`credits`).

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
pub(crate) use exchange::{Exchange, Order};
pub(crate) use message::{Envelope, MESSAGE_BYTES};

/// Channels of a view: as many as the runtime's other fabrics have.
pub(crate) const CHANNELS: u16 = 1024;
