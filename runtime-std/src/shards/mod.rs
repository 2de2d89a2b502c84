//! Shards: groups of replicas in a tree, and clients that multicast to any set of these groups, in
//! one order (TRAM).
//!
//! An overlay is a [`Description`]: a file, or built by a program. A process becomes a replica of
//! one of its groups by [`start`], and is driven by a thread of its own. Its application is a
//! [`ShardApplication`], which receives the messages of its group in their order, with their
//! destinations. A process becomes a client by [`Client::connect`]; it multicasts to a set of
//! groups, and learns who delivered.
//!
//! A replica that has lost its memory returns with a snapshot from another replica of its group,
//! and counts again once a quorum that excludes it has admitted it. A group that loses the memory
//! of a majority at once has lost its state; it reports this and stops. If the overlay is
//! [durable](Description::durable), replicas save their logs to a disk before messages are answered
//! and continue from there, so only a group that loses a majority of its disks is lost. The overlay
//! never changes.
//!
//! The core contains the protocol itself ([`tramontane_core::tram`]). This module contains the
//! host's part.
//!
//! | file | subject |
//! |---|---|
//! | `description`, `description_error`, `places` | the overlay file; its errors; names, ids and node ids |
//! | `start`, `start_error`, `entering` | how a process becomes a replica, and gets its state |
//! | `founding`, `founding_stage`, `forming` | whether a replica forms its group or returns; in which stages, if it has a disk |
//! | `durable`, `shown_disks` | the disk of a replica; how older copies of the others' disks are noticed |
//! | `application`, `engine`, `parts`, `snapshot` | the application's side; the engine of a replica; its parts and status; the state that a returning replica takes over |
//! | `client`, `client_engine`, `seat` | a client; its engine; how it gets its number |
//! | `lent`, `links`, `fabric` | memory that the core borrows; two-member views; the fabric |
//! | `calls`, `lives`, `messages`, `service` | how processes meet; the known processes; their messages; the control server |
//! | `request`, `status`, `ask` | requests of other threads; the status; questions of operators and clients |

mod application;
mod ask;
mod calls;
mod client;
mod client_engine;
mod description;
mod description_error;
mod durable;
mod engine;
mod entering;
mod forming;
mod founding;
mod founding_stage;
#[cfg(any(test, fuzzing))]
pub(crate) mod hostile_bytes;
mod lent;
mod links;
mod lives;
mod messages;
mod parts;
mod places;
mod request;
mod seat;
mod service;
mod shown_disks;
mod snapshot;
mod start;
mod start_error;
mod status;

pub use self::application::ShardApplication;
pub use self::ask::{AskError, Operator};
pub use self::client::Client;
pub use self::client_engine::{ClientError, Delivery};
pub use self::description::{ANSWER_MAX, CLIENTS_MAX, Description, GroupDescription, Replicas};
pub use self::description_error::DescriptionError;
pub use self::durable::FolderError;
pub use self::places::{NoSuchPlace, Places};
pub use self::start::{Running, StartOptions, start};
pub use self::start_error::StartError;
pub use self::status::{ReplicaState, ReplicaStatus};
pub use tramontane_core::ids::GroupId;
pub use tramontane_core::tram::{
    Answered, Answers, Delivered, Destinations, MessageId, ReplicaId, SendError,
};
