//! Liveness of partners in a fixed membership: incarnations, heartbeats, and the reaction of a pair
//! when one of its members fails.
//!
//! Each member publishes its incarnation and a heartbeat in the header of its row. A [`Monitor`]
//! posts this node's header and watches those of the other members. The monitor is separate from
//! the node: a group that does not want it opens no monitor, and the machine code of its nodes is
//! the same.
//!
//! # Invariants
//! - If the monitor is stepped before the node and the fabric keeps writes in order, the new
//!   incarnation of a member that returns with empty memory lands before any of its other writes.
//! - A member that has been reported as restarted, or that publishes that it has stopped because of
//!   this member, never again counts as the same member.
//! - This module never decides that a group continues without a member. [`decide`] applies a
//!   policy, and for a pair, [`Node::go_on_alone`](crate::node::Node::go_on_alone) carries out the
//!   decision.
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
