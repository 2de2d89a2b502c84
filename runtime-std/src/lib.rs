//! Tramontane as a program: threads, processes, the shared-memory fabric, and RDMA as a cargo feature.
//!
//! A program joins a group, and from then on delivers what every member delivers, in the same order:
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use std::time::Duration;
//! use tramontane_core::ids::SubgroupId;
//! use tramontane_core::multicast::Batch;
//! use tramontane_runtime::configuration::GroupConfiguration;
//! use tramontane_runtime::join::{JoinOptions, Meeting, join};
//! use tramontane_runtime::member::Settings;
//! use tramontane_runtime::shared_memory::{GroupName, Root};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A group of one, so that this runs by itself; 8 slots a sender, messages of up to 64 bytes.
//! let group = GroupConfiguration::single(1, 1, 8, 64);
//! let options = JoinOptions {
//!     meeting: Meeting::SharedMemory { root: Root::from_env(), name: GroupName::unique("doc")? },
//!     time_limit: Duration::from_secs(10),
//!     cancel: &AtomicBool::new(false),
//!     settings: Settings::default(),
//! };
//! let mut member = join(&group, 0, &options)?;
//! let sender = member.sender(SubgroupId::ZERO).expect("all members send");
//! sender.send(b"hello", Duration::from_secs(1))?;
//!
//! let mut delivered = Vec::new();
//! while delivered.is_empty() {
//!     member.step(&mut |batch: &mut Batch<'_>| {
//!         delivered.extend(batch.map(|message| message.payload.to_vec()));
//!     })?;
//! }
//! assert_eq!(delivered, [b"hello"]);
//! member.leave();
//! # Ok(())
//! # }
//! ```
//!
//! Members of such a group stay to its end. Those of a [`group`] may fail, leave and join: [`group::start`] makes this
//! process one of a [`group::Description`], its application is a [`group::Replica`], and `tramontane node` is the program
//! that does so.
//!
//! `examples/three_members.rs` has several members, with polling threads. The program itself is [`cli`].

pub mod bench;
mod block_range;
pub mod blocks;
pub mod cli;
pub mod configuration;
#[cfg(any(test, fuzzing))]
pub mod garbage;
pub mod group;
pub mod host;
pub mod join;
pub mod joined;
pub mod local;
pub mod member;
mod poll;
pub mod process;
pub mod rdma;
#[cfg(feature = "verbs")]
pub mod rdma_views;
pub mod shared_memory;
mod table;
pub mod tcp;

pub use block_range::OutOfMemory;
