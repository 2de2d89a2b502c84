//! The time at which a member reports ready to the driver, and the features that it claims.

use crate::protocol::{Line, say};

/// All features except `network`, because members communicate over a socket in the shared folder,
/// and those that only shards have.
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

/// The features of shards: without views, and without restart from storage.
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

/// The time at which a member reports to the driver that it accepts messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// The member reports at once, because a client has nothing to wait for.
    AtOnce,
    /// The member reports after its first view.
    WithFirstStep,
    /// The member reports after taking over the state of its groups, which have no views.
    WhenCurrent,
}

/// Reports to the driver that the member is ready.
pub fn greet(shards: bool) {
    say(&Line::InitOk {
        name: "reference",
        version: env!("CARGO_PKG_VERSION"),
        features: if shards { FEATURES_OF_SHARDS } else { FEATURES },
    });
}
