//! Liveness of partners in a fixed membership: incarnations, heartbeats, and the reaction of a pair
//! when one of the two fails.
//!
//! Each member shows its incarnation and a heartbeat in the header of its row. A [`Monitor`] posts
//! this node's header and watches those of the other members. It is separate from the node: a group
//! that does not want it opens no monitor, and its nodes are the same machine code.
//!
//! # Invariants
//! - If the monitor is stepped before the node and the fabric keeps writes in order, a member that
//!   returns with empty memory shows its new incarnation before any other write of it lands.
//! - A member that was reported as restarted, or that shows that it stopped because of this one,
//!   never again counts as the same member.
//! - This module never decides that a group continues without a member. [`decide`] applies a
//!   policy, and [`Node::go_on_alone`](crate::node::Node::go_on_alone) carries out the decision,
//!   for a pair.
//!
//! | file | contents |
//! |---|---|
//! | `event` | the reported events, with stable numbers |
//! | `monitor` | shows this member's liveness, and watches the others |
//! | `policy` | the reaction of one of two channels when the other fails |
//!
//! Requirements: HLT-1, HLT-2.

mod event;
mod monitor;
mod policy;

pub use event::{HealthEvent, HealthKind};
pub use monitor::{HealthError, HealthOptions, Monitor, PeerHealth};
pub use policy::{Decision, Discretes, Policy, decide};
