//! Tramontane's fabric over RDMA verbs: reliable connections, one a peer, on Linux's libibverbs.
//!
//! | module | what it holds | needs libibverbs |
//! |---|---|---|
//! | [`devices`] | devices as data, and which port, address and packet size are taken | to ask for them |
//! | [`settings`], [`timing`], [`status`] | limits; how long a peer may be silent; how a request can end | no |
//! | `protocol` | credits, rings, names, cards, the exchange of blocks | no |
//! | `site` | a device, on which memory and connections of views are made | yes |
//! | `views` | the fabric of a member through all its views, beside a side channel | yes |
//! | `fabric` | [`Fabric`], [`Permissions`] and [`Blocks`] | yes |
//! | `ffi` | everything foreign, and all that is unsafe but for what a caller promises of block memory | yes |
//!
//! What needs libibverbs is behind the cargo feature `device`, so that everything else is built and
//! tested without it.
//!
//! # What is promised (HAL-1)
//! - *Order between writes to one peer*: always. A reliable connection executes writes in the order
//!   in which they were posted, and none here asks for relaxed ordering.
//! - *Order within a write*: only if the caller says so. No device tells, and even one in software
//!   may copy with instructions that do not keep it.
//! - *Visible upon completion*: where the driver is known to work in software, and else only if the
//!   caller says so. A completion means that the other adapter acknowledged, not that its bus is
//!   done.
//!
//! A member that saw a counter runs [`Fabric::observe_barrier`] before it reads what the counter
//! guards.
//!
//! [`Fabric`]: tramontane_core::fabric::Fabric
//! [`Fabric::observe_barrier`]: tramontane_core::fabric::Fabric::observe_barrier
//! [`Permissions`]: tramontane_core::fabric::Permissions
//! [`Blocks`]: tramontane_core::fabric::Blocks

pub mod devices;
#[cfg(feature = "device")]
mod fabric;
#[cfg(feature = "device")]
mod ffi;
#[cfg(feature = "device")]
mod locked;
// Tested without a device, and of use only with one.
#[cfg(any(test, feature = "device"))]
#[cfg_attr(not(feature = "device"), allow(dead_code, unused_imports))]
mod protocol;
pub mod settings;
#[cfg(feature = "device")]
mod site;
pub mod status;
pub mod timing;
#[cfg(feature = "device")]
mod views;

#[cfg(feature = "device")]
pub use fabric::{BlockMemory, BlockStore, Loss, NoBlockMemory, Verbs};
#[cfg(feature = "device")]
pub use ffi::MemoryRegion;
#[cfg(feature = "device")]
pub use protocol::Counters;
pub use settings::{Limits, RevokeBy};
#[cfg(feature = "device")]
pub use site::{JoinError, REGIONS_MAX, RegionMemory, Report, Rows, Site, ViewOptions};
#[cfg(feature = "device")]
pub use views::{NoView, RdmaViews};
