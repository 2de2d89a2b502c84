//! The fabric interface: the core's only means of communication.
//!
//! Protocol code changes its own row and then *posts* the ranges that a peer should receive. The
//! fabric decides how the ranges travel: as one-sided writes, as frames, as events in virtual time,
//! or not at all if memory is shared.
//!
//! Order of calls: [`Fabric::open`] for a view; [`Fabric::ready`] until every peer is ready; then
//! any number of [`Fabric::post`] and [`Fabric::poll`]; and finally [`Fabric::retire`] until it
//! returns true. Before a member sleeps, it calls [`Fabric::arm`] and polls once more for work.
//!
//! Wrappers (for counting, tracing or fault injection) implement the same trait.
//!
//! | module | subject |
//! |---|---|
//! | `seam` | the trait, and the events that it reports |
//! | `capabilities`, `error`, `write` | promises and limits; causes of failures; one write |
//! | `blocks`, `permissions` | two-sided transfers; regions whose owner grants permission to write |
//! | `host` | the additional needs of a host: memory of views, and sleep |
//! | `host_regions` | the same for regions: their memory, and views that open and close independently |
//! | `block_store`, `regions` | block memory, and its region numbers |
//! | `routed` | a fabric whose events pass through its host |
//!
//! Requirement: FAB-1.

#[cfg(feature = "blocks")]
mod block_store;
#[cfg(feature = "blocks")]
mod blocks;
mod capabilities;
mod error;
mod host;
mod host_regions;
mod permissions;
#[cfg(feature = "blocks")]
mod regions;
mod routed;
mod seam;
mod write;

#[cfg(feature = "blocks")]
pub use block_store::{BlockStore, BlockUse, HostBlocks};
#[cfg(feature = "blocks")]
pub use blocks::{BlockEvent, BlockLimits, Blocks, Channel, Way};
pub use capabilities::{Capabilities, Promises};
pub use error::{ErrorKind, FabricError, LossCause};
pub use host::{HostFabric, LocalBell, ViewPlan, ViewRows};
pub use host_regions::{HostRegions, RegionMemory};
pub use permissions::{PermissionEvent, Permissions};
#[cfg(feature = "blocks")]
pub use regions::{REGIONS_MAX, Regions, TooManyRegions};
pub use routed::Routed;
pub use seam::{Event, Fabric, ViewMemory};
pub use write::{Area, Kind, Region, Token, WRITES_MAX, Write, WriteList};
