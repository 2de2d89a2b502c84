//! The TCP fabric: hosts without RDMA, and members on one host that share no memory.
//!
//! One connection a pair carries everything between two members, in both directions, over all
//! views, of which many may be open at once. A write is a frame; its receiver compares it with its
//! own memory and stores it into its own copy of the writer's row, or into a region that the writer
//! may write to. So a peer can change nothing but its own row, where that has room, and what it was
//! granted.
//!
//! | module | subject |
//! |---|---|
//! | `memory` | the rows of one view at one member |
//! | `blocks` | the [`Blocks`](tramontane_core::fabric::Blocks) of the fabric, and their memory |
//! | `regions` | the [`Permissions`](tramontane_core::fabric::Permissions) of the fabric |
//! | `frame` | the frames of a connection |
//! | `send_queue`, `lent_content` | what waits to be sent to a peer; a part of a row or region in it |
//! | `incoming` | what comes from a peer |
//! | `notice`, `stream_end` | what of it the member must learn of; how it ends |
//! | `body` | where the rest of a frame goes |
//! | `landing` | which views both ends have open, and where writes go in each |
//! | `connection` | one peer: its socket, and how it ended |
//! | `connections` | all of them, and which may have something to do |
//! | `views`, `peers` | the views that are open, and the way to each member; peers one by one |
//! | `event_queue` | events that the member has not polled yet |
//! | `rate` | how fast a connection may send |
//! | `watch` | waiting for sockets, and for the bell of the own process |
//! | `fabric`, `posting` | the [`Fabric`](tramontane_core::fabric::Fabric) of all that; its posts |
//! | `host` | the [`HostFabric`](tramontane_core::fabric::HostFabric) |
//!
//! # What it keeps
//! - **Order.** TCP keeps it, and the receiver stores in it: both promises about order hold.
//! - **Completion.** A list with a token is completed when its receiver says that it is stored.
//! - **Back-pressure.** A peer that takes nothing costs one list of writes and its socket's
//!   buffers; its next posts are `QueueFull`, and what is posted later says everything that changed
//!   meanwhile. Blocks wait in block memory, a few for each channel, and go in pieces, between
//!   which lists go.
//! - **Failure.** A connection that ended is a peer that is lost, for good. Nothing connects again
//!   by itself: whatever was under way is unknown, and only a new view makes that sound.
//! - **Keys.** With a [`SharedKey`](tramontane_control::SharedKey) all is sealed by the cipher of
//!   the handshake ([`tramontane_control`]). Without one it crosses in clear, which is refused
//!   beyond this machine unless the caller says that it may.
//! - **Sleep.** The kernel wakes a thread that waits for a socket as soon as something comes. A
//!   member that shares its processor does best to sleep as soon as it finds no work
//!   ([`idle_time`](tramontane_core::fabric::HostFabric::idle_time) of zero): to give way and look
//!   again costs it whole time slices wherever another thread computes.
//! - **Strangers.** They reach no member: members listen only while they meet, and what a stranger
//!   can cost then is bounded there.

mod blocks;
mod body;
mod connection;
mod connections;
mod event_queue;
mod fabric;
mod frame;
mod host;
#[cfg(any(test, fuzzing))]
pub mod hostile_bytes;
mod incoming;
mod landing;
mod lent_content;
mod memory;
mod notice;
mod peers;
mod posting;
mod rate;
mod regions;
mod send_queue;
mod stream_end;
mod views;
mod watch;

pub use blocks::{BlockBytes, BlockMemory, BlockStore, NoBlockMemory};
pub use connection::Settings;
pub use fabric::Tcp;
pub use memory::{NoRows, Rows};
pub use regions::RegionMemory;
pub use watch::Bell;
