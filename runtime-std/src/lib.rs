//! Groups on Linux hosts: how a process becomes a member, sends and delivers, over shared memory,
//! TCP or RDMA, whose library is loaded when a group uses it. The command line is another crate.
//!
//! A program is a member of a [`group`]: [`group::start`] makes this process one of a
//! [`group::Description`], and its application is a [`group::Replica`], which is handed what every
//! member is handed, in the same order. Members may fail, leave and join, or are the same from
//! beginning to end: that is a setting. `tramontane node` is the program that does so.
//!
//! `examples/three_members.rs` has several members, with polling threads.

mod block_transfer;
pub mod blocks;
pub mod carrier;
pub mod fabric;
pub mod group;
#[cfg(any(test, fuzzing))]
pub mod hostile_bytes;
pub mod member;
mod poll;
pub mod rdma;
mod requests;
mod session_messages;
pub mod shards;

pub use tramontane_shared_memory as shared_memory;
pub use tramontane_tcp as tcp;
