//! The shared-memory fabric: members of one group on one machine.
//!
//! Each member keeps its row in memory of its own, mapped writable by the owner and read-only by
//! its peers: the release store of a guard *is* the write, and the MMU keeps a faulty process out
//! of its peers' rows. Rows and block memory are memfds, allocated whole and sealed against
//! shrinking, growing and foreign writing; each member's doorbell is one too, which every member
//! may ring. Their descriptors go from process to process through sockets in a folder, where
//! members find each other:
//!
//! ```text
//! /dev/shm/tramontane-<uid>/      ours alone (mode 0700), made and removed as needed
//!   <group>/                      one run of one group
//!     member-<node id>            who this member is, and how far it has come; its lock is its life
//!     memory-<node id>            the socket that takes descriptors of its peers' memory
//!     door-<node id>              the node's control socket, which somebody else makes
//! ```
//!
//! Where blocks go between the members, each row has block queues behind it
//! ([`ViewPlan::with_blocks`](tramontane_core::fabric::ViewPlan::with_blocks)), in which its owner
//! says which blocks it offers and which it took. A block's receiver copies it, once, from the
//! sender's memory into its own.
//!
//! # Invariants
//! - **A lock is a life.** The owner holds an exclusive `flock` on its member file from before the
//!   file has its name until it leaves; the kernel drops it with the process, however that ends.
//!   Whoever can take a shared lock looks at the file of a dead member. Nothing is inferred from
//!   process ids, which are reused.
//! - **Nothing in the folder is mapped.** What is there may be shortened, changed or removed: it
//!   kills no member (see `docs/security.md` for what happens). What is mapped is sealed memory,
//!   whose length nobody can change, the owner included.
//! - **Members that have met need no name.** Each holds the other's file and the way to its socket.
//!   The names are for those that come later; a process whose names are removed makes them again.
//! - **A peer's descriptor is not trusted.** It is mapped only if its memory is sealed, allocated
//!   whole, of the length that was agreed, and signed by the live process that sent it.
//! - **No memory is used twice** (VIE-11). Each view's row is a new memfd. A process that was
//!   stopped and wakes in a later view has the old memory alone to write to.
//! - **A view's row is its process's.** It is taken only while that process lives, and only if its
//!   header names the incarnation of the member file and the layout.
//! - **A place is never a gap.** A peer's row has its addresses before its memory is there: zeros,
//!   which the memory takes the place of in one step.
//! - **Memory is allocated before it is passed on**: a full machine is an error, never a SIGBUS.
//! - **Memory goes with its processes.** It has no name, so a member that is killed leaves none
//!   behind; its files are cleared by the next that starts or leaves.
//! - **Nobody writes into another's memory**, rows, regions or blocks. What a peer posts to a
//!   region its owner applies, under the right that the peer has then. What a peer says of a block
//!   is compared with what can be before a byte is read, and what its sender gave up while it was
//!   read is not told of (`block_queues`).
//! - **Names change under the folder's lock** only (a `flock` on the folder itself), except that a
//!   member unlinks what is its own. A group's folder is removed under its own lock. A process that
//!   took the lock of one that is gone meanwhile finds out and starts again; so does one that finds
//!   the root gone.
//! - **No wake-up is lost**: see [`doorbell`].
//!
//! A process takes its place in a group with [`Residence::claim`], [`Residence::rows`] makes the
//! memory of each view, and [`SharedMemory`] is the `Fabric` over it.
//!
//! | module | subject |
//! |---|---|
//! | `root`, `folder` | where groups live, and when they are cleared away |
//! | `files`, `member_file` | what a process has in the folder, and what it says of itself there |
//! | `sealed`, `space`, `header`, `map` | sealed memory, what is to be had of it, what stands first, addresses |
//! | `descriptors` | how descriptors go from process to process |
//! | `peer` | another process, as this one sees it, and the memory that it sent |
//! | `own_place` | what a process has in the folder, made again if somebody removes it |
//! | `residence`, `view_rows` | a process's place, and fresh rows for each view |
//! | `mappings` | the rows of one view |
//! | `row_plan` | which rows there are, and how long each is |
//! | `open_view`, `open_views`, `fabric` | the fabric over them |
//! | `region_memory` | regions, which all views of a process show |
//! | `write_queue`, `region_lanes` | what a writer says to the owner of a region, and the owner to it |
//! | `region_inlet`, `region_outlet` | the two ends of that |
//! | `view_regions`, `permissions` | the regions of a view, and the fabric's side of them |
//! | `own_region` | the own memory that peers map |
//! | `block_memory` | what blocks are sent from and received into |
//! | `block_queues` | what members say to each other of blocks |
//! | `sending`, `receiving`, `copying` | blocks to one peer, from one peer, and the copy |
//! | `exchange`, `blocks` | the blocks of a view, and the fabric's side of them |
//! | `doorbell`, `futex` | sleep |
//!
//! Limits: all members run as one user and see one file system. A process that forks without `exec`
//! gives its children the lock, and with it a share in its life.

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

pub use block_memory::{BlockMemory, BlockStore};
pub use error::Error;
pub use fabric::SharedMemory;
pub use futex::{Bell, Fences, register_barrier};
pub use mappings::Mappings;
pub use own_region::OwnRegion;
pub use region_memory::RegionMemory;
pub use residence::Residence;
pub use root::{GroupName, Root};
