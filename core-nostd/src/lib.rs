//! Tramontane's core: atomic multicast over remote memory, without `std` and without a heap.
//!
//! A message sent to a group arrives at every member or at none, in one order for all. The protocols are
//! those of Derecho with Spindle (Jha, Rosa, Birman, ICDCS 2022); the numbers in the text (ORD-1, SMC-5 and
//! so on) are the project's requirements.
//!
//! # What the core keeps
//! - Sans I/O, sans clock, sans threads: [`node::Node::step`] does a bounded amount of work and returns.
//! - It never blocks, recurses, allocates, or panics on anything that a peer or a caller can give.
//! - Memory is lent: the rows, the state, the outboxes; [`layout::Layout`] says how much.
//! - A [`fabric::Fabric`] is the only way out.
//! - Cells only grow; what is larger than a cell is published by a counter that is written after it.
//!
//! # In the order to read it
//! [`ids`], [`layout`], [`fabric`], [`memory`], [`smc`], [`multicast`], [`node`], [`view`], [`turn`] for those who
//! drive one node from several threads, and [`rdmc`] for messages that go in blocks.
//!
//! # Targets
//! Counts are 64 bits wide and shared between processors, so a target needs atomics of 64 bits.
#![cfg_attr(not(any(test, loom, tramontane_interleave)), no_std)]

pub mod fabric;
pub mod ids;
pub mod layout;
pub mod memory;
pub mod multicast;
pub mod node;
pub mod rdmc;
pub mod smc;
mod sync;
pub mod turn;
pub mod view;

#[cfg(tramontane_interleave)]
pub use sync::interleave;
