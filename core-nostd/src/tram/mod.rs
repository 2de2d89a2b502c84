//! Order across many groups: TRAM over permissions, with the feature `tram`.
//!
//! A sharded service has a group of replicas for each shard. A client multicasts a message to any
//! set of groups. All of their replicas deliver it, and any two that deliver the same two messages
//! deliver them in the same order. Messages for different groups do not pay for a common order,
//! because they have none.
//!
//! The groups form a tree. A message is ordered first at the lowest group that reaches all its
//! destinations, and is passed down from there. Within a group, the leader writes its followers'
//! logs under a permission that they grant to one leader at a time.
//!
//! The modules, in reading order:
//!
//! | module | subject |
//! |---|---|
//! | `overlay` | the tree of groups |
//! | `shape` | the layout of logs and rows |
//! | `link`, `places` | the processes that share a view with this one, and the state kept for each |
//! | `timestamp`, `entry`, `counts` | the right to lead; the entries of a log; the counts derived from them |
//! | `feed` | rings of messages: from clients, and from a parent |
//! | `log` | the local log |
//! | `role`, `common` | the state of a replica in one role only, and in every role |
//! | `step` | the context of a step |
//! | `replica` | a replica, and its step |
//! | `oracle`, `grant`, `campaign` | which replica should lead, which one may write, and how a replica becomes leader |
//! | `follow`, `repair`, `stream` | how a leader keeps its followers' logs |
//! | `lead` | how a leader assigns log indices to messages |
//! | `deliver`, `pass_on` | handing messages over, and passing them on to children |
//! | `saved`, `disk` | durable replicas: the record of a log, and how it is saved and recovered |
//! | `least_saved` | how a rolled-back disk is noticed |
//! | `acknowledge` | how a leader knows what its followers' logs contain |
//! | `bodies`, `carry`, `complete` | payloads to which entries refer, if that option is on |
//! | `confirm` | confirmation of messages that the parent passed on early |
//! | `rows`, `posting`, `token` | posting of changes |
//! | `client` | clients, which multicast messages |
//! | `status` | the status of a replica for its host |
//!
//! Sources: TRAM, whole; Mu (Aguilera et al., OSDI 2020) for permissions; requirements TRM-1 to
//! TRM-10. `campaign` and `follow` explain the differences from the paper.

mod acknowledge;
mod bodies;
mod campaign;
mod carry;
mod client;
mod common;
mod complete;
mod confirm;
mod counts;
mod deliver;
mod disk;
mod entry;
mod events;
mod feed;
mod follow;
mod grant;
mod lead;
mod least_saved;
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
mod saved;
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
pub use least_saved::LeastSaved;
pub use link::{Attachment, LinkId, LinkRole, Memory, ReplicaLinks, Stage};
pub use log::LOG;
pub use overlay::{
    CHILDREN_MAX, Destinations, GROUPS_MAX, Group, Limits, Overlay, OverlayError, REPLICAS_MAX,
    ReplicaId,
};
pub use posting::Posting;
pub use progress::{Delivered, Halt, OpenError, Progress, ShardApplication};
pub use replica::{LentState, Replica};
pub use saved::{LogRecord, Unsaved};
pub use shape::{ReplicaBytes, Shape};
pub use status::LogCounts;
pub use timestamp::Timestamp;
