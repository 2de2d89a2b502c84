//! Regions over TCP: their owner stores peers' writes in order, as long as the peers have the right
//! (TRM-8).
//!
//! | module | subject |
//! |---|---|
//! | `memory` | the memory of the regions of this process |
//! | `rights` | rights, and their numbers |
//! | `lists` | lists that are confirmed |
//! | `reads` | reads, and their answers |
//! | `peer` | the knowledge of this member and one peer about each other's regions |
//! | `permissions` | the fabric's interface to them |
//!
//! ```text
//! the owner                                     the peer
//!           -------- region, its bytes ------>  (with the first view)
//! grant     -------- right 7 ---------------->  it may post
//!           <------- list with right 7 -------
//! stores it ---- so many lists are done ----->  completed
//! revoke    -------- right 0 ---------------->  what is not confirmed by then was denied
//!           <------- list with right 7 -------
//! drops it
//! ```
//!
//! A revoked right ends at once, because the same thread both stores and revokes. A peer without a
//! right is refused by its own fabric; anything that it sends anyway is dropped.
//!
//! The owner's fabric answers a read from the owner's memory, in pieces that are sent between
//! lists.

mod lists;
mod memory;
mod peer;
mod permissions;
mod reads;
mod rights;

pub use memory::RegionMemory;
pub(super) use memory::{OwnRegions, REGIONS_MAX};
pub(super) use peer::PeerRegions;
pub(super) use reads::{AskedRead, AskedReads, PostedRead};
pub(super) use rights::{Right, RightNumbers};
