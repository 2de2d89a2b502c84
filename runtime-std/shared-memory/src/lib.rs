//! The shared-memory fabric, for members of one group on one machine.
//!
//! Each member keeps its row in memory that its owner maps writable and its peers map read-only:
//! the release store of a guard *is* the write, and the MMU keeps a faulty process out of its
//! peers' rows. Rows and block memory are memfds, fully allocated, and sealed against shrinking,
//! growing and writing by others. Each member's doorbell is also a memfd, and every member may ring
//! it. The descriptors are exchanged through sockets in a folder, in which members find each other:
//!
//! ```text
//! /dev/shm/tramontane-<uid>/      private (mode 0700), made and removed as needed
//!   <group>/                      one run of one group
//!     member-<node id>            the member's identity and state; its lock shows its life
//!     memory-<node id>            the socket that receives its peers' descriptors
//!     door-<node id>              the node's control socket, made by another component
//! ```
//!
//! If members exchange blocks, each row is followed by block queues
//! ([`ViewPlan::with_blocks`](tramontane_core::fabric::ViewPlan::with_blocks)), in which the row's
//! owner lists the blocks that it offers and those that it has taken. A block's receiver copies the
//! block once, from the sender's memory into its own.
//!
//! # Example
//! Two members of one process store a number in their rows, and each reads the other's:
//!
//! ```
//! # use std::{sync::{Arc, atomic::AtomicBool}, time::Duration};
//! use tramontane_core::fabric::{Fabric as _, HostFabric as _, ViewPlan, ViewRows as _};
//! use tramontane_core::ids::{NodeId, Rank, ViewId};
//! use tramontane_shared_memory::{GroupName, Residence, Root, SharedMemory};
//!
//! let folder = tempfile::tempdir()?;
//! let (root, group) = (Root::under(folder.path()), GroupName::new("pages")?);
//! let (view, members, digest) = (ViewId(1), [NodeId(1), NodeId(2)], 42);
//! let mut opened = Vec::new();
//! for (rank, node) in [(Rank(0), members[0]), (Rank(1), members[1])] {
//!     let (incarnation, patience) = (1, Duration::from_secs(5));
//!     let place = Residence::claim(
//!         &root, &group, node, digest, incarnation, patience, &AtomicBool::new(false),
//!     )?;
//!     let mut fabric = SharedMemory::for_residence(&Arc::new(place));
//!     let rows = fabric.rows(&ViewPlan::with_sizes(view, rank, &members, &[4096; 2], digest))?;
//!     fabric.open(view, &rows.memory())?;
//!     opened.push((fabric, rows));
//! }
//! let [(first, of_first), (second, of_second)] = &mut opened[..] else { unreachable!() };
//! // Rows arrive through the members' sockets.
//! while !first.ready(view, Rank(1)) || !second.ready(view, Rank(0)) {
//!     first.check_peers();
//!     second.check_peers();
//! }
//! of_first.row().cell(0).expect("in the row").publish(7);
//! of_second.row().cell(0).expect("in the row").publish(8);
//! assert_eq!(of_second.rows()[0].cell(0).expect("in the row").load(), 7);
//! assert_eq!(of_first.rows()[1].cell(0).expect("in the row").load(), 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - **A lock shows that a member is alive.** The owner holds an exclusive `flock` on its member
//!   file from before the file has its name until the owner leaves. The kernel releases the lock
//!   when the process ends in any way. If a process can take a shared lock, the member is dead.
//!   Nothing is inferred from process ids, because they are reused.
//! - **Nothing in the folder is mapped.** Its files may be truncated, changed or removed without
//!   killing any member (see `docs/security.md` for the effects). Mapped memory is sealed, so
//!   nobody can change its length, not even the owner.
//! - **Members that have met need no names.** Each holds the other's file and a connection to its
//!   socket. The names are for later members. If a process's names are removed, the process creates
//!   them again.
//! - **A peer's descriptor is not trusted.** It is mapped only if its memory is sealed, fully
//!   allocated, of the agreed length, and signed by the live process that sent it.
//! - **No memory is used twice** (VIE-11). Each view's row is a new memfd. A process that was
//!   stopped, and wakes in a later view, can write only to the old memory.
//! - **A view's row belongs to its process.** It is accepted only while that process lives, and
//!   only if its header names the layout and the incarnation in the member file.
//! - **Addresses are never unmapped early.** A peer's row has its addresses before its memory
//!   arrives. Until then they read as zeros, which the memory replaces in one step.
//! - **Memory is allocated before it is passed on**, so a full machine causes an error, never a
//!   SIGBUS.
//! - **Memory ends with its processes.** It has no name, so a killed member leaves none behind. A
//!   killed member's files are removed by the next member that starts or leaves.
//! - **No member writes into another's memory**, be it rows, regions or blocks. A region's owner
//!   applies the writes that peers post to it, under the right that each peer has at that moment. A
//!   peer's claims about a block are checked against the limits before a byte is read. If the
//!   sender gave up a block while it was being read, the block is not reported (`block_queues`).
//! - **Names change only under the folder's lock** (a `flock` on the folder itself), except that a
//!   member unlinks its own files. A group's folder is removed under its own lock. If a process has
//!   taken the lock of a folder that has since been removed, it notices this and starts over; the
//!   same applies if the root has been removed.
//! - **No wakeup is lost**: see [`doorbell`].
//!
//! A process takes its place in a group with [`Residence::claim`]. [`Residence::rows`] allocates
//! the memory of each view, and [`SharedMemory`] is the `Fabric` over it.
//!
//! | module | subject |
//! |---|---|
//! | `root`, `folder` | the folders of groups, and their removal |
//! | `files`, `member_file` | the files of a process in the folder, and its statements there |
//! | `sealed`, `space`, `header`, `map` | sealed memory, its availability, its first page, its addresses |
//! | `descriptors` | the exchange of descriptors between processes |
//! | `peer` | another process, as this one sees it, and the memory that it sent |
//! | `own_place` | a process's files in the folder, made again if they are removed |
//! | `residence`, `view_rows` | a process's place in a group, and fresh rows for each view |
//! | `mappings` | the rows of one view |
//! | `row_plan` | the rows of a view, and their lengths |
//! | `open_view`, `open_views`, `fabric` | the fabric over them |
//! | `region_memory` | regions, which all views of a process show |
//! | `write_queue`, `region_lanes` | the queue from a writer to the owner of a region, and the answers |
//! | `region_inlet`, `region_outlet` | the two ends of that queue |
//! | `view_regions`, `permissions` | the regions of a view, and the fabric's interface to them |
//! | `own_region` | local memory that peers map |
//! | `block_memory` | the memory that blocks are sent from and received into |
//! | `block_queues` | the messages between members about blocks |
//! | `sending`, `receiving`, `copying` | blocks to one peer, from one peer, and the copy |
//! | `exchange`, `blocks` | the blocks of a view, and the fabric's interface to them |
//! | `doorbell`, `futex` | sleep |
//!
//! Limits: all members run as the same user and see the same file system. A process that forks
//! without `exec` passes the lock on to its children, so that the member still counts as alive
//! while they run.

mod block_memory;
mod block_queues;
mod blocks;
pub mod copying;
mod descriptors;
pub mod doorbell;
mod error;
mod exchange;
mod fabric;
mod files;
mod folder;
mod futex;
mod header;
mod map;
mod mappings;
mod member_file;
mod met;
#[cfg(test)]
mod mounted;
mod open_view;
mod open_views;
mod own_place;
mod own_region;
mod peer;
mod permissions;
mod receiving;
mod region_inlet;
mod region_lanes;
mod region_memory;
mod region_outlet;
mod residence;
mod root;
mod row_plan;
mod sealed;
mod sending;
mod space;
mod view_regions;
mod view_rows;
mod write_queue;

pub use block_memory::{SharedBlockMemory, SharedBlockStore};
pub use error::Error;
pub use fabric::SharedMemory;
pub use futex::{Bell, Fences, register_barrier};
pub use mappings::Mappings;
pub use open_views::VIEWS_MAX;
pub use own_region::OwnRegion;
pub use region_memory::SharedRegionMemory;
pub use residence::Residence;
pub use root::{GroupName, Root};
