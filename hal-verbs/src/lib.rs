//! Tramontane's fabric over RDMA verbs: one reliable connection per peer, using Linux's libibverbs.
//!
//! Start with [`RdmaViews`], the fabric of one member over a [`Site`], which is an open device.
//! Here two members use simulated devices (feature `fake`) and a simulated network as the side
//! channel. The first writes a number into its row, and the second sees it in its copy:
//!
//! ```
//! use tramontane_core::fabric::{Fabric as _, HostFabric as _};
//! use tramontane_core::fabric::{Kind, ViewPlan, ViewRows as _, Write};
//! use tramontane_core::ids::{NodeId, Rank, ViewId};
//! use tramontane_fixtures::network::{Network as SideNetwork, SimFabric};
//! use tramontane_fixtures::profile::Profile as SideProfile;
//! use tramontane_verbs::fake::{Clock, Network, Profile};
//! use tramontane_verbs::{Limits, RdmaViews, Site};
//!
//! let (view, members, digest) = (ViewId(1), [NodeId(1), NodeId(2)], 42);
//! let network = Network::new(1, Clock::Real);
//! let side = SideNetwork::new(SideProfile::default(), &members, 1).shared();
//! let mut opened = Vec::new();
//! for own in [Rank(0), Rank(1)] {
//!     let device = network.add_device(Profile::soft_roce());
//!     let site = Site::open(&device.wanted(), &Limits::default(), None)?;
//!     let mut fabric = RdmaViews::new(site, SimFabric::start(&side, own.index()))?;
//!     let rows = fabric.rows(&ViewPlan::with_sizes(view, own, &members, &[64; 2], digest))?;
//!     fabric.open(view, &rows.memory())?;
//!     opened.push((fabric, rows));
//! }
//! let [(first, of_first), (second, of_second)] = &mut opened[..] else { unreachable!() };
//! while !first.ready(view, Rank(1)) || !second.ready(view, Rank(0)) {
//!     side.borrow_mut().advance(100_000);
//!     first.carry();
//!     second.carry();
//! }
//! of_first.row().cell(0).expect("in the row").publish(7);
//! first.post(view, Rank(1), &[Write::of_row(0, 8, Kind::Guard)], None)?;
//! while of_second.rows()[0].cell(0).expect("in the row").load() != 7 {
//!     second.carry();
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | subject | needs libibverbs |
//! |---|---|---|
//! | [`devices`] | devices as data, and the choice of port, address and packet size | to discover devices |
//! | [`settings`], [`timing`], [`status`] | limits; detection of silent peers; results of requests | no |
//! | `protocol` | credits, rings, names, cards, the exchange of blocks | no |
//! | `site` | a device on which memory and connections of views are created | yes |
//! | `trial` | trials whether the device denies forbidden writes | yes |
//! | `views` | the fabric of a member through all its views, with a side channel | yes |
//! | `fabric` | [`Fabric`], [`Permissions`] and [`Blocks`] | yes |
//! | `commands` | kernel commands of views, which workers run | yes |
//! | `adapter` | the seam to a device: of libibverbs, or a fake one | either |
//! | [`check`] | acceptance checks of RDMA between two hosts | yes |
//! | `fake` | a simulated device for tests | no |
//! | `ffi` | all foreign code, and all unsafe code except for pages and the caller's promises about block memory | yes |
//!
//! libibverbs is loaded when a device is first requested, and the build does not need it. If it is
//! missing, [`NoLibrary`] names the package to install. The feature `fake` adds a simulated device
//! for tests: the whole fabric runs over it without libibverbs.
//!
//! # Promises (HAL-1)
//! - *Order between writes to one peer*: always. If the devices keep it, every write goes straight
//!   into the peer's row. If they may place writes in any order, each list ends with a message that
//!   the peer's processor applies when its receive completes: see [`WriteOrder`], and
//!   [`DeviceKind::order`](devices::DeviceKind::order) for the order that each kind of device
//!   keeps.
//! - *Order within a write*: only if the caller's limits say so. A device can answer for the writes
//!   that it receives, but not for its peers' devices, and even a software device may copy with
//!   instructions that do not keep the order.
//! - *Visible upon completion*: for known software drivers, and otherwise only if the caller's
//!   limits say so. A completion means that the remote NIC has acknowledged the write, not that the
//!   write has crossed the remote bus.
//! - *Copies of rows are passed on* (REL-1): always. A member registers the ring in its copy of a
//!   third member's row once more, for the member that passes on the messages, and only the ring.
//! - *After `revoke` nothing lands*: always. Each right is a separate key, which `revoke` ends.
//!   Before the first view with regions, a trial checks that the device denies ended keys. If lists
//!   are sent as updates, a region's owner applies them under the sender's current right.
//! - *A guard carries its value at the call*: always, whether it is sent inline or from staging
//!   memory.
//!
//! After a member has seen a counter, it calls [`Fabric::observe_barrier`] before it reads what the
//! counter guards.
//!
//! [`Fabric`]: tramontane_core::fabric::Fabric
//! [`Fabric::observe_barrier`]: tramontane_core::fabric::Fabric::observe_barrier
//! [`Permissions`]: tramontane_core::fabric::Permissions
//! [`Blocks`]: tramontane_core::fabric::Blocks

mod adapter;
mod cgroup;
pub mod check;
mod commands;
pub mod devices;
mod fabric;
#[cfg(feature = "fake")]
pub mod fake;
mod ffi;
mod locked;
mod protocol;
pub mod settings;
mod site;
pub mod status;
pub mod timing;
mod trial;
mod views;

pub use adapter::MemoryRegion;
pub use fabric::{BlockMemory, BlockStore, Loss, LossReason, NoBlockMemory, Verbs};
pub use ffi::{LinkedFunctions, NoLibrary, link};
pub use protocol::Counters;
pub use settings::{Limits, WriteOrder};
pub use site::{
    DeviceNews, JoinError, REGIONS_MAX, RegionMemory, Report, Rows, Site, ViewCost, ViewOptions,
};
pub use views::{Figures, NoView, RdmaViews, VIEWS_MAX};
