//! Order across many groups: TRAM over permissions, with the feature `tram`.
//!
//! A sharded service has a group of replicas for each shard. A client multicasts a message to any
//! set of groups. All of their replicas deliver it, and any two that deliver the same two messages
//! deliver them in the same order. Messages for different groups pay nothing for a common order,
//! because they have none.
//!
//! The groups form a tree. A message is ordered first at the lowest group that reaches all its
//! destinations, and is passed down from there. Within a group, the leader writes its followers'
//! logs under a permission that they grant to one leader at a time.
//!
//! In the order to read it:
//!
//! | module | subject |
//! |---|---|
//! | `overlay` | the tree of groups |
//! | `shape` | where things lie in logs and rows |
//! | `link`, `places` | the processes with which one shares a view of two, and what is kept of them |
//! | `timestamp`, `entry`, `counts` | who leads; what a log holds; what all know alike from it |
//! | `feed` | rings of messages: from clients, and from a parent |
//! | `log` | the own log |
//! | `role`, `common` | what a replica has in one role alone, and in each |
//! | `step` | what a step works with |
//! | `replica` | a replica, and its step |
//! | `oracle`, `grant`, `campaign` | who should lead, who may write, how a replica becomes leader |
//! | `follow`, `repair`, `stream` | how a leader keeps its followers' logs |
//! | `lead` | how it gives places to messages |
//! | `deliver`, `pass_on` | handing over, and passing on to children |
//! | `bodies`, `carry`, `complete` | payloads that entries refer to, if a switch is on |
//! | `confirm` | what the parent has decided of what it passed on early |
//! | `rows`, `posting`, `token` | what changed, as posts |
//! | `client` | what multicasts |
//! | `status` | what a host shows of a replica |
//!
//! Sources: TRAM, whole; Mu (Aguilera et al., OSDI 2020) for permissions; requirements TRM-1 to
//! TRM-10. `campaign` and `follow` explain the differences from the paper.

mod bodies;
mod campaign;
mod carry;
mod client;
mod common;
mod complete;
mod confirm;
mod counts;
mod deliver;
mod entry;
mod events;
mod feed;
mod follow;
mod grant;
mod lead;
mod link;
mod log;
mod oracle;
mod overlay;
mod pass_on;
mod places;
mod posting;
mod progress;
mod repair;
mod replica;
mod replies;
mod role;
mod rows;
mod shape;
mod show;
mod snapshot;
mod status;
mod step;
mod stream;
mod timestamp;
mod token;

pub use client::{
    Answered, Answers, Client, ClientLink, ClientLinks, ClientOptions, GroupState, MessageState,
    SendError,
};
pub use common::{LinkState, ReplicaOptions};
pub use counts::SourceState;
pub use entry::MessageId;
pub use link::{Attachment, LinkId, LinkRole, Memory, ReplicaLinks, Stage};
pub use log::LOG;
pub use overlay::{
    CHILDREN_MAX, Destinations, GROUPS_MAX, Group, Limits, Overlay, OverlayError, REPLICAS_MAX,
    ReplicaId,
};
pub use posting::Posting;
pub use progress::{Application, Delivered, Halt, OpenError, Progress};
pub use replica::{LentState, Replica};
pub use shape::{ReplicaBytes, Shape};
pub use status::LogCounts;
pub use timestamp::Timestamp;
