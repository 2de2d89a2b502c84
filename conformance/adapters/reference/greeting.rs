//! When a member tells the driver that it is ready, and what it claims.

use crate::protocol::{Line, say};

/// Everything of the protocol but `network`, as members talk over a socket in the shared folder,
/// and what only shards have.
const FEATURES: &[&str] = &[
    "views",
    "crash",
    "leave",
    "join",
    "restart",
    "durable",
    "pause",
    "stats",
    "several-groups",
    "order-across-groups",
    "outside-senders",
    "suspension",
    "full-disk",
    "empty-messages",
    "large-messages",
    "huge-messages",
];

/// What is claimed of shards: no views, and no restart from storage.
const FEATURES_OF_SHARDS: &[&str] = &[
    "crash",
    "rejoin",
    "durable",
    "pause",
    "stats",
    "several-groups",
    "order-across-groups",
    "outside-senders",
    "leaders",
    "suspension",
    "empty-messages",
    "large-messages",
    "huge-messages",
];

/// When a member tells the driver that it can take messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// It is a member of no group, and waits for nothing.
    AtOnce,
    /// It has its first view.
    WithFirstStep,
    /// It has taken over the state of its groups, and has no views.
    WhenCurrent,
}

/// Tells the driver that the member is ready.
pub fn greet(shards: bool) {
    say(&Line::InitOk {
        name: "reference",
        version: env!("CARGO_PKG_VERSION"),
        features: if shards { FEATURES_OF_SHARDS } else { FEATURES },
    });
}
