//! Whether partners live, for a membership that is fixed: incarnations, heartbeats, and what a pair
//! does when one of the two is gone.
//!
//! Each member shows its incarnation and a heartbeat in the header of its row. A [`Monitor`] beside
//! the node posts them and watches those of the others. It is a thing of its own: a group that does
//! not want it opens none, and its nodes are the same machine code.
//!
//! # What holds
//! - A member that comes back with empty memory shows another incarnation before anything else of
//!   it lands, where the monitor is stepped before the node: on fabrics that keep writes in order.
//! - A member that a monitor has reported as restarted, or that shows that it stopped because of
//!   this one, is never taken for the one that it was.
//! - Nothing here decides that a group goes on without a member. [`decide`] says what a policy
//!   says, and [`Node::go_on_alone`](crate::node::Node::go_on_alone) does it, for a pair.
//!
//! | file | what it holds |
//! |---|---|
//! | `event` | what is reported, with stable numbers |
//! | `monitor` | shows the own life, and watches the others' |
//! | `policy` | what one of two channels does when the other is gone |
//!
//! Requirements: HLT-1, HLT-2.

mod event;
mod monitor;
mod policy;

pub use event::{HealthEvent, HealthKind};
pub use monitor::{HealthError, HealthOptions, Monitor, PeerHealth};
pub use policy::{Decision, Discretes, Policy, decide};
