//! Tramontane's core: atomic multicast over remote memory, without `std` and without a heap.
//!
//! A message sent to a group arrives at every member or at none, in the same order everywhere.
//! Begin with [`node::Node`]: one member of a group. Its [`step`](node::Node::step) sends, receives
//! and delivers; a [`layout::Layout`] describes the group and the memory that the node needs; a
//! [`fabric::Fabric`] carries its writes to the other members. Programs on an operating system
//! should use the crate `tramontane` instead.
//!
//! The protocols are those of Derecho with Spindle (Jha, Rosa, Birman, ICDCS 2022). Ids such as
//! COR-1 below are the project's requirements.
//!
//! # Properties
//! - It has no I/O, no clock and no threads: [`node::Node::step`] does a bounded amount of work and
//!   returns.
//! - It never blocks, recurses or allocates, and no input from a peer or a caller makes it panic.
//! - The caller lends all memory: the rows, the state and the outboxes. [`layout::Layout`] computes
//!   their sizes.
//! - A [`fabric::Fabric`] is its only way to the outside.
//! - Cells only grow. Data larger than a cell is published by a counter that is written after it.
//!
//! # Reading order
//! [`ids`], [`layout`], [`fabric`], [`check`], [`memory`], [`smc`], [`multicast`], [`node`]; then
//! [`storage`] for statically declared memory, [`health`] for partners that may fall silent or
//! restart, `view` for a membership that changes, `rdmc` for messages sent in blocks, and [`turn`]
//! for several threads that drive one node.
//!
//! # Features
//! None is on by default. A partition with a fixed membership needs none, and neither builds nor
//! reviews the code that they add.
//!
//! | feature | adds |
//! |---|---|
//! | `views` | a membership that changes: the module `view`, `node::ViewNode`, and the columns of the view protocol in [`layout`] |
//! | `blocks` | block multicast: the module `rdmc`, `fabric::Blocks`, and in [`layout`] channels and subgroups with large messages |
//! | `tram` | order across many groups: the module `tram` |
//! | `durable` | counts of the messages that members have made durable, in logged subgroups; with `views`, promises that are made durable before a seal is echoed; the module `restart` |
//! | `prefetch` | a hint to the processor while a burst of messages is built; this is the only assembly |
//! | `defmt` | formats for a `defmt` logger |
//!
//! In every build a slot may hold the descriptor of a large message, so the stages of [`multicast`]
//! are the same machine code in all builds. Without `blocks` no layout allows such a descriptor,
//! and a sender that publishes one misbehaves.
//!
//! # Targets
//! Counts are 64 bits wide and shared between processors, so a target needs 64-bit atomics.
//!
//! Requirement: COR-1.
#![cfg_attr(not(any(test, loom, tramontane_interleave)), no_std)]

pub mod check;
pub mod fabric;
pub mod health;
pub mod ids;
pub mod layout;
pub mod memory;
pub mod multicast;
pub mod node;
#[cfg(feature = "blocks")]
pub mod rdmc;
#[cfg(feature = "durable")]
pub mod restart;
pub mod smc;
#[cfg(not(loom))]
pub mod storage;
mod sync;
#[cfg(feature = "tram")]
pub mod tram;
pub mod turn;
#[cfg(feature = "views")]
pub mod view;

#[cfg(tramontane_interleave)]
pub use sync::interleave;
