//! Groups on Linux hosts, over shared memory, TCP or RDMA.
//!
//! Start with [`group::Running`], a member of a group. [`group::start`] makes this process a member
//! of the group that a [`group::Description`] describes. A [`group::Application`] receives the same
//! messages in the same order at every member, and a [`group::Sender`] sends them:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use std::time::Duration;
//!
//! use tramontane_runtime::group::{Description, Messages, StartOptions, start};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // One node, so that this runs by itself: 8 slots per sender, messages of up to 64 bytes.
//! let name = format!("runtime-{}", std::process::id());
//! let group = Description::builder(&name).nodes(1).window(8).message_max(64).build()?;
//! let delivered = Arc::new(Mutex::new(Vec::new()));
//! let kept = Arc::clone(&delivered);
//! let application = move |messages: &mut Messages<'_, '_>| {
//!     kept.lock().unwrap().extend(messages.map(|message| message.payload.to_vec()));
//! };
//! let running = start(group, StartOptions::new(0), application)?;
//! let mut sender = running.sender().ok_or("every node sends")?;
//! sender.send(b"hello", Duration::from_secs(1))?;
//! running.leave(Duration::from_secs(10))?;
//! assert_eq!(*delivered.lock().unwrap(), [b"hello"]);
//! # Ok(())
//! # }
//! ```
//!
//! `examples/three_members.rs` runs three members. Members may fail, leave and join, or stay the
//! same from beginning to end, depending on the setting [`group::Membership`]. The RDMA library is
//! loaded only when a group uses it.
//!
//! | module | subject |
//! |---|---|
//! | [`group`] | groups: every member delivers what any member sends, in one order |
//! | [`blocks`] | block multicasts: large objects from one member to many |
//! | [`metrics`] | a page of metrics for Prometheus |
//! | [`shards`] | groups of replicas in a tree, and clients that multicast to any set of them |
//!
//! Programs depend on the `tramontane` crate, which re-exports these items. Its command line is a
//! separate crate.

mod block_transfer;
pub mod blocks;
pub mod carrier;
pub mod fabric;
pub mod group;
#[cfg(any(test, fuzzing))]
pub mod hostile_bytes;
pub mod member;
pub mod metrics;
mod poll;
pub mod rdma;
mod requests;
mod retention;
mod session_messages;
pub mod shards;
pub mod toml_text;

pub use tramontane_shared_memory as shared_memory;
pub use tramontane_tcp as tcp;
