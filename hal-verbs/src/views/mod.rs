//! RDMA through views: writes and blocks go by RDMA, and another fabric stays beside it, as one
//! over TCP, over which members identify themselves, tell each other where each view's memory is,
//! and notice that one is gone.
//!
//! Each view has memory, keys and queue pairs of its own, none of which is ever used for another
//! (VIE-11): a write of an old view has no connection that leads to a new one, and its key is good
//! for nothing there. What a peer must know of them travels in small rows of the same view beside
//! (`cards`), so it is as sealed as those connections are (HAL-7), and a member with another list
//! of members under the same view is never connected.
//!
//! | file | subject |
//! |---|---|
//! | `cards` | how two members come to be connected in a view |
//! | `fabric` | the [`Fabric`](tramontane_core::fabric::Fabric) of it |
//! | `blocks` | blocks, which go by the view's connections |
//!
//! # What it keeps
//! - On the way of a message nothing is asked of the kernel: the way beside is looked at while a
//!   peer is awaited, when the member wakes, and as often as
//!   [`HostFabric::check_peers`](tramontane_core::fabric::HostFabric::check_peers) is called.
//! - A peer is lost as soon as either way says so, and cut on both.
//! - The queue pairs of a view that ended are reset before its memory goes: nothing lands in it, or
//!   in what comes after.

mod blocks;
mod cards;
mod fabric;

pub use fabric::{NoView, RdmaViews};
