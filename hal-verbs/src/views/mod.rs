//! RDMA through views: writes and blocks go by RDMA, and another fabric stays open as the
//! side channel, such as one over TCP. There members identify themselves, tell each other where
//! each view's memory is, and notice that one is gone.
//!
//! Each view has memory, keys and queue pairs of its own, none of which is ever used for another
//! (VIE-11): a write of an old view has no connection that leads to a new one, and its key is good
//! for nothing there. What a peer must know of them travels in small rows of the same view on the
//! side channel (`cards`), so it is as sealed as that channel is (HAL-7). A member with another
//! list of members under the same view is never connected.
//!
//! | file | subject |
//! |---|---|
//! | `cards` | how two members come to be connected in a view |
//! | `fabric` | the [`Fabric`](tramontane_core::fabric::Fabric) of it |
//! | `host` | the [`HostFabric`](tramontane_core::fabric::HostFabric) |
//! | `blocks` | blocks, which go by the view's connections |
//! | `regions` | regions, which all views show, and rights to them |
//! | `device` | what the device of all views says |
//!
//! # What it keeps
//! - Registrations and queue pairs are made and ended by workers, not by the polling
//!   thread ([`commands`](crate::commands)). A step gives the kernel one command at most, but for
//!   peers that are cut though nobody lost them: one each.
//! - On the way of a message nothing is asked of the kernel: the side channel is looked at while a
//!   peer is awaited, when the member wakes, and as often as
//!   [`HostFabric::check_peers`](tramontane_core::fabric::HostFabric::check_peers) is called.
//! - A peer is lost as soon as the device or the side channel says so, and cut on both.
//! - The queue pairs of a view end before its memory goes: nothing lands in it, or in what comes
//!   after.

mod blocks;
mod cards;
mod device;
mod fabric;
mod figures;
mod host;
mod regions;

pub use fabric::{NoView, RdmaViews};
pub use figures::Figures;
