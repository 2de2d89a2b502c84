//! Publishes to a Tramontane group, and subscribes to it, without being a member.
//!
//! A client connects to any member of a group with a subgroup that accepts clients (`clients =
//! true` in the group file), over a Unix socket, or over TCP with the group's key. It has the
//! addresses of several members, and connects to another one if its member fails, stops or leaves.
//!
//! - A [`Publisher`] numbers its lines. When it connects to another member, it resends the lines
//!   that have not reached its [`Level`]. The group delivers each line once, in the publisher's
//!   order, and in one order with all messages from members and other clients.
//! - A [`Subscriber`] receives each message with its position, starting at a given position or with
//!   the next message. When it connects to another member, it resumes at the next position. If
//!   messages are lost, [`Event::Gap`] says which; if the group's history differs from the received
//!   one, [`Event::Changed`] says at which position the difference starts. A subscriber that
//!   [follows](Subscriber::follow) first receives the application's state. It also learns of views,
//!   and of clients that end, so it knows everything that a member knows.
//! - [`query`] asks for the status of the group.
//!
//! ```no_run
//! use std::time::Duration;
//! use tramontane_client::{Event, Members, Publisher, PublisherOptions, Subscriber};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = tramontane_client::SharedKey::from_file("key".as_ref())?;
//! let members = Members::parse(["10.9.0.1:7000", "10.9.0.2:7000"])?.key(key).name("feed");
//! let mut subscriber = Subscriber::open(members.clone(), None)?;
//! let publisher = Publisher::open(members, PublisherOptions::default())?;
//! let receipt = publisher.publish(b"a line")?;
//! receipt.wait(Duration::from_secs(5))?;
//! if let Event::Message(message) = subscriber.next()? {
//!     println!("{} {:?}", message.place, message.payload);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Async programs
//! Each publisher and subscriber has a thread for its input and output. So it needs no async
//! runtime, but works with any: a [`Receipt`] is a future, [`Publisher::room`] returns one, and
//! [`Subscriber::poll_next`] is the basis for a stream.
//!
//! # How long a client is remembered
//! The group remembers a client as long as a member hears from it, and then for the duration of its
//! lease (one minute, unless the group file says otherwise). A client that reconnects later
//! receives [`LeaseOver`](ClientRefusal::LeaseOver): its unacknowledged lines may have been
//! delivered.

mod error;
mod history;
mod members;
mod outstanding;
mod publisher;
mod publishing;
mod query;
mod shared;
mod subscriber;
mod subscribing;

pub use error::{AddressError, ConnectError, PublishError, SubscribeError};
pub use members::Members;
pub use publisher::{Publisher, PublisherOptions, Receipt, Room};
pub use query::query;
pub use subscriber::{Event, Received, Subscriber};
pub use tramontane_control::client_messages::{
    ClientId, ClientLife, ClientRefusal, GroupAnswer, Level, Reached, ViewBegun,
};
pub use tramontane_control::{Address, KeyError, SharedKey};

/// The page of the guide about clients, whose example is compiled with the other doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/operators/clients.md")]
mod guide {}
