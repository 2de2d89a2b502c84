//! The shared-memory fabric and its rendezvous: members of one group on one machine.
//!
//! Each member keeps its row in a file of its own, mapped writable by the owner and read-only by its peers:
//! the release store of a guard *is* the write, and the MMU keeps a faulty process out of its peers' rows.
//! Beside it lies one small file with the member's doorbell, which every member may ring.
//!
//! ```text
//! /dev/shm/tramontane-<uid>/      ours alone (mode 0700), made and removed as needed
//!   <group>/                      one run of one group
//!     row-<node id>               a page of header, then the row
//!     bell-<node id>              one word, alone in its page
//! ```
//!
//! # Invariants
//! - **A lock is a life.** The owner holds an exclusive `flock` on its row file from before the file has its
//!   name until it leaves; the kernel drops it with the process, however that ends. Whoever can take a shared
//!   lock looks at the file of a dead member. Nothing is inferred from process ids, which are reused.
//! - **No file is used twice** (VIE-11). A row file is made, filled and unlinked; it is never truncated, and
//!   a mapping outlives the name, so a reader cannot be killed by a peer that goes away.
//! - **Memory is allocated before it is mapped**: a full file system is an error, never a SIGBUS.
//! - **Names change under the folder's lock** only (a `flock` on the folder itself), except that a member
//!   unlinks what is its own. A group's folder is removed under its own lock, and who took the lock of one
//!   that is gone meanwhile finds out and starts again; so does who finds the root gone.
//! - **One run** (VIE-12). A member goes on only when all published the same number, made of all members'
//!   random incarnations. A restarted member has another incarnation, so it never joins the run it fell out of.
//! - **No wake-up is lost**: see [`doorbell`].
//!
//! A group is entered through [`Rendezvous::join`], which gives [`Mappings`]: the rows. [`SharedMemory`] is
//! the `Fabric` over them.
//!
//! Limits: all members run as one user and see one file system. A process that forks without `exec` gives
//! its children the lock, and with it a share in its life.

pub mod doorbell;
mod error;
mod fabric;
mod files;
mod folder;
mod futex;
mod header;
mod map;
mod mappings;
mod open_view;
mod peer;
mod rendezvous;
mod residence;
mod root;
mod space;
mod view_rows;

pub use error::Error;
pub use fabric::{SharedMemory, Wake};
pub use futex::{Bell, Fences};
pub use mappings::Mappings;
pub use rendezvous::Rendezvous;
pub use residence::Residence;
pub use root::{GroupName, Root};
