//! RDMA over views: writes and blocks travel by RDMA, and another fabric, such as one over TCP,
//! stays open as the side channel. Members use it to identify themselves, to exchange the addresses
//! of each view's memory, and to notice the loss of a member.
//!
//! Each view has its own memory, keys and queue pairs, which are never reused for another view
//! (VIE-11): a write in an old view has no connection to a new view, and its key is worthless
//! there. The addresses that a peer needs travel in small rows of the same view on the side channel
//! (`cards`), so they are as well protected as that channel (HAL-7). A member with another list of
//! members under the same view is never connected.
//!
//! | file | subject |
//! |---|---|
//! | `cards` | connecting two members in a view |
//! | `fabric` | the [`Fabric`](tramontane_core::fabric::Fabric) over all views |
//! | `host` | the [`HostFabric`](tramontane_core::fabric::HostFabric) |
//! | `blocks` | blocks, on the connections of their view |
//! | `regions` | regions, which all views show, and rights to them |
//! | `device` | events of the device that all views share |
//!
//! # Invariants
//! - Registrations and queue pairs are created and destroyed by workers, not by the polling thread
//!   ([`commands`](crate::commands)). A step executes at most one kernel command, plus one for each
//!   peer that is cut without having been lost.
//! - Sending a message makes no kernel call: the side channel is checked only while a peer is
//!   awaited, when the member wakes, and whenever
//!   [`HostFabric::check_peers`](tramontane_core::fabric::HostFabric::check_peers) is called.
//! - A peer is lost as soon as the device or the side channel reports it, and is cut on both.
//! - The queue pairs of a view are destroyed before its memory is released, so that nothing lands
//!   in the memory afterwards.

mod blocks;
mod cards;
mod device;
mod fabric;
mod figures;
mod host;
mod regions;

pub use fabric::{NoView, RdmaViews};
pub use figures::Figures;
pub use regions::VIEWS_MAX;
