//! The shared-memory fabric and its rendezvous: members of one group on one machine.
//!
//! Each member keeps its row in a file of its own, mapped writable by the owner and read-only by
//! its peers: the release store of a guard *is* the write, and the MMU keeps a faulty process out
//! of its peers' rows. Beside it lies one small file with the member's doorbell, which every member
//! may ring.
//!
//! ```text
//! /dev/shm/tramontane-<uid>/      ours alone (mode 0700), made and removed as needed
//!   <group>/                      one run of one group
//!     row-<node id>               a page of header, then the row: the base file
//!     bell-<node id>              one word, alone in its page
//! ```
//!
//! Where membership changes, the base file is the header alone, and lives as long as its process;
//! each view's row has a file beside it:
//!
//! ```text
//!     row-<node id>.<view>.<digest> a page of header, then the row, of one view and one list of
//!     members door-<node id> the node's control socket, which somebody else makes block-<node
//!     id>.<serial> a page of header, then block memory; whatever the membership
//! ```
//!
//! Where blocks go between the members, each row has a desk behind it
//! ([`ViewPlan::with_blocks`](tramontane_core::fabric::ViewPlan::with_blocks)), in which its owner
//! says which blocks it offers and which it took. A block's receiver copies it, once, from the
//! sender's memory into its own.
//!
//! # Invariants
//! - **A lock is a life.** The owner holds an exclusive `flock` on its base file from before the
//!   file has its name until it leaves; the kernel drops it with the process, however that ends.
//!   Whoever can take a shared lock looks at the file of a dead member. Nothing is inferred from
//!   process ids, which are reused.
//! - **No file is used twice** (VIE-11). A row file is made, filled and unlinked; it is never
//!   truncated, and a mapping outlives the name, so a reader cannot be killed by a peer that goes
//!   away. A process that was stopped and wakes in a later view has the old files alone to write
//!   to.
//! - **A view's row is its process's.** It is taken only while that process lives, and only if its
//!   header names the incarnation of the base file, the layout, and the length. What somebody else
//!   left under that name is nobody's.
//! - **A place is never a gap.** A peer's row has its addresses before its file is there: zeros,
//!   which the file takes the place of in one step.
//! - **Memory is allocated before it is mapped**: a full file system is an error, never a SIGBUS.
//! - **Nobody writes into another's memory**, rows or blocks. What a peer says of a block is
//!   compared with what can be before a byte is read, and what its sender gave up while it was read
//!   is not told of (`desk`).
//! - **Names change under the folder's lock** only (a `flock` on the folder itself), except that a
//!   member unlinks what is its own. A group's folder is removed under its own lock. A process that
//!   took the lock of one that is gone meanwhile finds out and starts again; so does one that finds
//!   the root gone.
//! - **One run** (VIE-12). A member goes on only when all published the same number, made of all
//!   members' random incarnations. A restarted member has another incarnation, so it never joins
//!   the run it fell out of.
//! - **No wake-up is lost**: see [`doorbell`].
//!
//! A group of fixed membership is entered through [`Rendezvous::join`], which gives [`Mappings`]:
//! the rows. One whose views change is entered through [`Residence::claim`], and
//! [`Residence::rows`] gives the rows of each view. [`SharedMemory`] is the `Fabric` over either:
//! the first is the case of one view whose members were all there before.
//!
//! | module | subject |
//! |---|---|
//! | `root`, `folder` | where groups live, and when they are cleared away |
//! | `files`, `space`, `header`, `map` | a process's own files: names, memory, what stands first, addresses |
//! | `peer` | another process, as this one sees it |
//! | `residence`, `view_rows` | a process's place, and fresh rows for each view |
//! | `rendezvous` | the barrier of a fixed membership |
//! | `mappings` | the rows of one view |
//! | `row_plan` | which rows there are, and how long each is |
//! | `open_view`, `fabric` | the fabric over them |
//! | `block_memory` | what blocks are sent from and received into |
//! | `desk` | what members say to each other of blocks |
//! | `sending`, `receiving`, `copying` | blocks to one peer, from one peer, and the copy |
//! | `exchange`, `blocks` | the blocks of a view, and the fabric's side of them |
//! | `doorbell`, `futex` | sleep |
//!
//! Limits: all members run as one user and see one file system. A process that forks without `exec`
//! gives its children the lock, and with it a share in its life.

mod block_memory;
mod blocks;
pub mod copying;
mod desk;
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
#[cfg(test)]
mod mounted;
mod open_view;
mod peer;
mod receiving;
mod rendezvous;
mod residence;
mod root;
mod row_plan;
mod sending;
mod space;
mod view_rows;

pub use block_memory::{BlockMemory, BlockStore, OwnRegion};
pub use error::Error;
pub use fabric::SharedMemory;
pub use futex::{Bell, Fences, register_barrier};
pub use mappings::Mappings;
pub use rendezvous::Rendezvous;
pub use residence::Residence;
pub use root::{GroupName, Root};
