//! A node: all protocols of one member, driven by one call.
//!
//! [`Node::step`] is the only input that does work. It takes the time, the fabric and the
//! application, does a bounded amount of work and returns; it never blocks. For each subgroup of
//! the node, the bound is one window of slots per sender, twice as many turns examined, and the
//! writes that bring each peer up to date.
//!
//! - *Inputs*: [`Node::step`]; and, with the feature `durable`, `Node::set_durable`.
//! - *Outputs*: upcalls and posts during a step, [`Progress`] after it.
//! - *Getters*: [`Node::frontiers`], [`Node::is_settled`], [`Node::is_lost`].
//!
//! If the membership may change (the feature `views`), a `ViewNode` holds the node and its view
//! protocol and steps both. Such a node cannot be stepped by itself or with the view protocol of
//! another node.
//!
//! A panic in the application's upcall may unwind through a step. The node is then in an undefined
//! state and must not be stepped again, which the runtime ensures (DEL-2).
//!
//! Requirement: COR-2.

mod alone;
mod attention;
#[cfg(feature = "durable")]
mod durable;
#[cfg(feature = "blocks")]
mod large;
mod open;
mod progress;
mod step;
#[cfg(feature = "views")]
mod undelivered;
#[cfg(feature = "views")]
mod view_node;
#[cfg(feature = "views")]
mod view_posts;
#[cfg(feature = "views")]
mod views;

pub use alone::AloneError;
#[cfg(feature = "durable")]
pub use durable::DurableCounts;
pub use open::{Loan, OpenError, Options, State};
pub use progress::{Progress, StepError};
pub use step::{Frontiers, Node};
#[cfg(feature = "views")]
pub use undelivered::{Undelivered, UndeliveredMessage};
#[cfg(feature = "views")]
pub use view_node::{ViewError, ViewLoan, ViewNode};
#[cfg(feature = "views")]
pub use views::{Preparation, ViewLink};
