//! Groups of block multicasts: large messages from one member to all others, at nearly the price of
//! one copy (RDMC).
//!
//! A process joins others once ([`BlockNode::start`]). Between them groups come and go
//! ([`BlockNode::create`]), as many as there are numbers, each with members, a root, and a way in
//! which its blocks go; they may overlap in any way, and share one polling thread and the medium.
//!
//! # The life of a group
//! - Every member creates it, under one number and with the same options. Nobody waits for the
//!   others: who is late is sent nothing until it is there (RDM-4).
//! - The first member is its root, and alone sends: [`Group::send`] takes a [`Buffer`] and gives it
//!   back when the message is through here, in [`Recipient::completed`].
//! - At each other member [`Recipient::incoming`] gives the memory for a message, and
//!   [`Recipient::completed`] hands it over, whole; messages come in the order of their sends
//!   (RDM-5).
//! - The root closes it: [`Group::close`]. Closed means that every message reached every member.
//!   Who fails ends the group for all, and each is told who it was (RDM-6): [`Recipient::ended`].
//!
//! # Invariants
//! - A buffer is its holder's alone, or the runtime's: from `send` or `incoming` to `completed`
//!   nobody here can touch it.
//! - Upcalls are made one at a time, from the polling thread. A panic in one ends the node.
//! - A number names one group in the life of a node: it is not used twice, but for one that was
//!   refused.
//!
//! | module | subject |
//! |---|---|
//! | `node` | a process, and what it is asked |
//! | `group` | a group's handle, and how it ended |
//! | `recipient` | what an application is told |
//! | `engine` | the polling thread's part: events in, steps, sleep |
//! | `generations` | where groups are kept, and how channels are free again |
//! | `part` | one group: a transfer with its messages |
//! | `messages` | a group's messages at one member |
//!
//! Source: RDMC (Behrens et al., DSN 2018), 4.1 and figure 1.

pub use crate::fabric::{BlockMemoryError, BlockStore};

mod create_error;
mod end;
mod engine;
mod generations;
mod group;
mod messages;
mod node;
mod numbers;
mod part;
mod recipient;
mod request;

pub use self::create_error::CreateError;
pub use self::end::Ended;
pub use self::group::{CloseFailure, Group, SendFailure, SendRefusal};
pub use self::node::BlockNode;
pub use self::recipient::Recipient;
pub use crate::block_transfer::buffer::Buffer;
pub use crate::block_transfer::options::{BLOCK_BYTES_DEFAULT, GroupOptions};
