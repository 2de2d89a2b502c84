//! Publishes to a group of Tramontane, and subscribes to it, without being a member.
//!
//! A client connects to any member of a group with a subgroup that accepts clients (`clients =
//! true` in the group file): over a Unix socket, or over TCP with the group's key. It has the
//! addresses of several members, and connects to another one if its member dies, stops or leaves.
//!
//! - A [`Publisher`] numbers its lines. When it connects to another member, it resends the lines
//!   that have not reached its [`Level`]. The group delivers each line once, in the publisher's
//!   order, and in one order with all messages of members and other clients.
//! - A [`Subscriber`] gets each message with its position, from a given position or from now on. At
//!   another member it resumes at the next position. If messages are lost, [`Event::Gap`] says
//!   which; if the group's history differs from the received one, [`Event::Changed`] says from
//!   which position on. A subscriber that [follows](Subscriber::follow) first receives the
//!   application's state, and also learns of views and of clients that end: it knows what a member
//!   knows.
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
//! Each publisher and subscriber has a thread for its input and output. So no runtime is needed or
//! imposed: a [`Receipt`] is a future, [`Publisher::room`] returns one, and
//! [`Subscriber::poll_next`] is the basis for a stream.
//!
//! # How long a client is remembered
//! The group remembers a client while a member hears it, and for its lease afterwards (a minute,
//! unless the group file says otherwise). A client that reconnects later gets
//! [`LeaseOver`](ClientRefusal::LeaseOver): its unacknowledged lines may have been delivered.

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

pub use error::{AddressError, OpenError, PublishError, SubscribeError};
pub use members::Members;
pub use publisher::{Publisher, PublisherOptions, Receipt, Room};
pub use query::query;
pub use subscriber::{Event, Received, Subscriber};
pub use tramontane_control::client_messages::{
    ClientId, ClientLife, ClientRefusal, GroupAnswer, Level, Reached, ViewBegun,
};
pub use tramontane_control::{Address, KeyError, SharedKey};

/// The guide's page: its example is compiled with the other doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/operators/clients.md")]
mod guide {}
