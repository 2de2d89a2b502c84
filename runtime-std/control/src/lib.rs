//! How the members of a group find each other, over TCP or Unix sockets, before the first write and
//! while the group runs.
//!
//! Nothing here knows of RDMA or of shared memory: any fabric can start this way, and there is one
//! control plane for all.
//!
//! - **Meeting** ([`Mesh`]). A member listens, connects to all members of lower rank with retries
//!   until its time is up, and accepts those of higher rank. Each pair compares protocol version,
//!   view, layout digest and node ids. Then every member may [`Mesh::exchange`] messages with all
//!   others, any number of times, and stand at a [`Mesh::barrier`] (VIE-12). At the end the
//!   connections become [`Lifeline`]s: they close when a process ends, however it ends. Or they go
//!   on as the streams of a fabric over TCP ([`Mesh::into_connections`]), or for talks
//!   ([`Mesh::into_talks`]).
//! - **Visiting** ([`Door`], [`visit`]). A process keeps a door open as long as it runs. Nodes come
//!   there to join, peers of a later view to connect, operators to ask; each gets a [`Talk`], if
//!   both have the key and the group's digest. A talk over TCP may become the stream of a fabric.
//!
//! The same [`Listener`] serves both, one after the other: whoever comes to a meeting for something
//! else is told [`Refusal::NotRunning`], unless it asks and somebody attends the meeting
//! ([`Attendant`]); and whoever comes to a door to meet is told [`Refusal::Running`].
//!
//! # The way of a connection
//! ```text
//! connects                                accepts
//! preamble: magic, version, mode  ----->
//!                                 <-----  preamble
//! with a key: Noise_NNpsk0        <---->  (all below is encrypted and authenticated)
//! hello: purpose, view, digest,
//!        node, incarnation        ----->
//!                                 <-----  hello, verdict
//! verdict                         ----->
//!                                 <-----  who meets: a last verdict, whether its id is taken
//! ```
//! The view is compared only of those who meet: visitors come for whatever view there is.
//!
//! # Keys
//! With a [`SharedKey`], the handshake is `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` by the `snow`
//! crate. All members hold one key and no other identity, so there are no static keys (`NN`);
//! `psk0` proves the key in the very first message, so that a stranger costs a few hashes. Fresh
//! Diffie-Hellman keys on both sides keep what was exchanged secret even if the shared key is lost
//! later (HAL-7). Who has the key may claim to be any member: it keeps strangers out, and does not
//! tell members apart.
//!
//! Without a key everything crosses in clear. A [`Mesh`] takes that only where all addresses [are
//! local](Address::is_local), or where the caller says that it may ([`MeshOptions::allow_clear`]);
//! for a [`Door`] and a [`visit`] the caller decides by the address. A Unix socket needs no key:
//! its file lets in processes of the same user alone, and root's. A loopback port lets in every
//! process of the machine.
//!
//! # What a stranger can make us do
//! - Hold places: twice the members and eight in a meeting, [`GREETINGS_MAX`] at a door, each a
//!   thread and two descriptors, for five seconds. It keeps nobody out by that: when all are taken,
//!   one of the host with the most of them is closed, the one that has been there longest. To keep
//!   a member out it has to come so often that all places change hands while that member's first
//!   words cross, up to its hello: two round trips with a key, one without.
//! - Have us read, with a key, 256 bytes and compute a few hashes. Who recorded the first message
//!   of a member's handshake may repeat it; then we compute two products on the curve, and read one
//!   message of 64 KiB that does not open. Without a key anyone may have us read such a message,
//!   and whoever knows the group's digest is no stranger to us.
//! - Answer at the address of a member that has not started yet. What it says before it has shown
//!   the key ends nothing: members try on until their time is up, and tell what answered
//!   ([`Attendant::met_stranger`]).
//! - Have us write to the log a line for each time it is sent away (at `info`; at `debug` if it
//!   just goes).
//!
//! Nothing that it sends is allocated for beyond that, or believed. An id that is not one of a
//! door's nodes is refused before anything is kept for it, unless it only asks. Who is let in is no
//! stranger: at most [`VISITORS_MAX`] of them are with the callbacks of a door at once,
//! [`PEER_PLACES`] of them peers, and the next is told [`Refusal::Busy`]. A host that is gone is
//! noticed within a minute. How long each may stay there is for the callback to say, with the time
//! limits of its [`Talk`].

mod address;
mod attendant;
mod channel;
mod connection;
mod door;
mod error;
#[cfg(any(test, fuzzing))]
pub mod garbage;
mod gate;
mod greeting;
mod handshake;
mod hello;
mod identity;
mod key;
mod lifeline;
mod listener;
mod long;
mod meet;
mod mesh;
mod options;
mod patience;
mod refusal;
mod stream;
mod talk;
mod visit;

pub use address::Address;
pub use attendant::Attendant;
pub use channel::MESSAGE_MAX;
pub use connection::{
    Cipher, CipherError, Connection, RECORD_CONTENT_MAX, RECORD_HEADER, RECORD_MAX,
};
pub use door::{Door, GREETINGS_MAX, PEER_PLACES, VISITORS_MAX, Visitor};
pub use error::MeshError;
pub use hello::{Purpose, VERSION};
pub use identity::{Identity, incarnation};
pub use key::{KeyError, SharedKey};
pub use lifeline::{Lifeline, Sign};
pub use listener::Listener;
pub use mesh::Mesh;
pub use options::MeshOptions;
pub use refusal::Refusal;
pub use talk::{Talk, TalkError};
pub use visit::{VisitError, Visited, visit};
