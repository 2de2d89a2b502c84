//! Publish to a group of Tramontane, and subscribe to it, without being a member.
//!
//! A client connects to any member of a group whose subgroup takes clients (`clients = true` in the
//! group file): over a Unix socket, or over TCP with the group's key. It is given the addresses of
//! several members. If its member dies, stops or leaves, it goes to another one.
//!
//! - A [`Publisher`] numbers its lines. It sends again what has not reached its [`Level`] when it
//!   comes to another member. The group delivers each line once, in the order in which the
//!   publisher sent them, and in one order with everything that members and other clients send.
//! - A [`Subscriber`] gets each message with its place, from a place on or from now on. At another
//!   member it goes on with the next place. Where messages are gone it is told which
//!   ([`Event::Gap`]); where the group has another history than it was told, from which place on
//!   ([`Event::Changed`]).
//!   One that [follows](Subscriber::follow) takes over the application's state first, and is told
//!   of views and of clients that end: it knows what a member knows.
//! - [`query`] asks how things stand.
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
//! Each publisher and subscriber has a thread of its own, which does its input and output. So no
//! runtime is needed or imposed: a [`Receipt`] is a future, [`Publisher::room`] gives one, and
//! [`Subscriber::poll_next`] is what a stream needs.
//!
//! # How long a client is remembered
//! The group remembers a client while a member hears it, and for its lease afterwards (a minute,
//! unless the group file says otherwise). A client that comes back later is told
//! [`LeaseOver`](ClientRefusal::LeaseOver): what it had not seen acknowledged may have been
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
