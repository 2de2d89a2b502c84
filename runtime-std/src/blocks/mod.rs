//! Groups for block multicast, which sends large messages from one member to all others at nearly
//! the cost of a single copy (RDMC).
//!
//! A process connects to the others once ([`BlockNode::start`]). After that, groups between them
//! can be created at any time ([`BlockNode::create`]), limited only by their numbers. Each group
//! has its members, a root, and a schedule for its blocks. Groups may overlap in any way; all of
//! them share one polling thread and the fabric.
//!
//! # The life of a group
//! - Every member creates the group, with the same number and the same options. No member waits for
//!   the others, because a late member is sent nothing until it has created the group (RDM-4).
//! - The first member is the root, and the only one that sends. [`Group::send`] takes a [`Buffer`],
//!   which [`Recipient::completed`] returns once this member has finished sending the message.
//! - At every other member, [`Recipient::incoming`] provides the memory for a message, and
//!   [`Recipient::completed`] receives the complete message. Messages arrive in the order in which
//!   they were sent (RDM-5).
//! - The root closes the group with [`Group::close`]. A closed group has delivered every message to
//!   every member. If a member fails, the group ends at all members, and each learns which member
//!   failed (RDM-6): [`Recipient::ended`].
//!
//! # Invariants
//! - A buffer belongs either to its holder or to the runtime: between `send` or `incoming` and
//!   `completed`, the application cannot access it.
//! - Upcalls are made one at a time by the polling thread. A panic in an upcall ends the node.
//! - A number identifies one group for as long as the node runs. It is not used twice, unless the
//!   creation of the group was refused.
//!
//! | module | subject |
//! |---|---|
//! | `node` | a process, and its requests |
//! | `group` | a group's handle, and how the group ended |
//! | `recipient` | the application's callbacks |
//! | `engine` | the polling thread's part: events in, steps, sleep |
//! | `generations` | the channels of groups, and how they become free again |
//! | `part` | one group: a transfer with its messages |
//! | `messages` | a group's messages at one member |
//!
//! Source: RDMC (Behrens et al., DSN 2018), 4.1 and figure 1.

pub use crate::fabric::{AnyBlockStore, BlockMemoryError};

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
