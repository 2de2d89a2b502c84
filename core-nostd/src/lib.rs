//! Tramontane's core: atomic multicast over remote memory, without `std` and without a heap.
//!
//! A message sent to a group arrives at every member or at none, in one order for all. The
//! protocols are those of Derecho with Spindle (Jha, Rosa, Birman, ICDCS 2022); letters with a
//! number, as at the end of this text, are the project's requirements.
//!
//! # What the core keeps
//! - Sans I/O, sans clock, sans threads: [`node::Node::step`] does a bounded amount of work and
//!   returns.
//! - It never blocks, recurses, allocates, or panics on anything that a peer or a caller can give.
//! - Memory is lent: the rows, the state, the outboxes; [`layout::Layout`] says how much.
//! - A [`fabric::Fabric`] is the only way out.
//! - Cells only grow; what is larger than a cell is published by a counter that is written after
//!   it.
//!
//! # In the order to read it
//! [`ids`], [`layout`], [`fabric`], [`check`], [`memory`], [`smc`], [`multicast`], [`node`]; then
//! [`storage`] for memory that is declared, [`health`] for partners that may be silent or restart,
//! `view` for a membership that changes, `rdmc` for messages that go in blocks, and [`turn`] for
//! several threads that drive one node.
//!
//! # Features
//! None is on by default: a partition whose membership is fixed needs none, and builds and reviews
//! nothing of what they add.
//!
//! | feature | adds |
//! |---|---|
//! | `views` | a membership that changes: the module `view`, `node::ViewNode`, and the columns of the view protocol in [`layout`] |
//! | `blocks` | block multicast: the module `rdmc`, `fabric::Blocks`, and in [`layout`] channels and subgroups with large messages |
//! | `tram` | order across many groups: the module `tram` |
//! | `durable` | counts of what members have made durable, in subgroups that they log; with `views`, promises that are durable before a seal is echoed; the module `restart` |
//! | `prefetch` | a hint to the processor while a burst of messages is built: the only assembly |
//! | `defmt` | formats for a `defmt` logger |
//!
//! A slot may hold the descriptor of a large message in every build, so that the stages of
//! [`multicast`] are the same machine code in all of them: without `blocks` no layout allows one,
//! and a sender that publishes one misbehaves.
//!
//! # Targets
//! Counts are 64 bits wide and shared between processors, so a target needs atomics of 64 bits.
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
