//! Lets the members of a group find each other, over TCP or Unix sockets, before the first write
//! and while the group runs.
//!
//! This crate does not depend on RDMA or shared memory: any fabric can be started in this way, and
//! all of them share one control plane.
//!
//! - **Meeting** ([`Mesh`]). A member listens, connects to all members of lower rank, retrying
//!   until its time limit, and accepts those of higher rank. Each pair compares protocol version,
//!   view, layout digest and node ids. Every member may then [`Mesh::exchange`] messages with all
//!   others, any number of times, and wait at a [`Mesh::barrier`] (VIE-12). At the end, the
//!   connections become the streams of a fabric over TCP ([`Mesh::into_connections`]), or sessions
//!   ([`Mesh::into_sessions`]).
//! - **Sessions** ([`ControlServer`], [`open_session`]). A process keeps a control server open as
//!   long as it runs. Nodes connect to it to join, peers of a later view to exchange writes, and
//!   operators to ask questions. Each receives a [`Session`] if both ends have the key and the
//!   group's digest. A session over TCP may become the stream of a fabric.
//!
//! The same [`Listener`] first serves the meeting and then the sessions. A client that connects to
//! a meeting for another purpose receives [`Refusal::NotRunning`], unless it is an operator and the
//! meeting has a handler that serves operators ([`MeetingHandler`]). A member that connects to a
//! control server in order to meet receives [`Refusal::Running`].
//!
//! # The course of a connection
//! ```text
//! connects                                accepts
//! preamble: magic, version, mode  ----->
//!                                 <-----  preamble
//! with a key: Noise_NNpsk0        <---->  (all below is encrypted and authenticated)
//! hello: purpose, view, digest,
//!        node, incarnation        ----->
//!                                 <-----  hello, verdict
//! verdict                         ----->
//!                                 <-----  in a meeting: a last verdict, whether the id is taken
//! ```
//! The view is compared only in a meeting; clients of a control server accept any view.
//!
//! # Keys
//! With a [`SharedKey`], the handshake, performed by the `snow` crate, is
//! `Noise_NNpsk0_25519_AESGCM_BLAKE2s` if both processors have instructions for AES, and
//! `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` otherwise. All members hold one key and no other
//! identity, so there are no static keys (`NN`). `psk0` proves the key in the very first message,
//! so an unauthenticated peer costs only a few hashes. Fresh Diffie-Hellman keys on both sides keep
//! the traffic secret even if the shared key is compromised later (HAL-7). A process with the key
//! may claim to be any member: the key keeps others out, but does not distinguish members.
//!
//! After the handshake, each end seals and opens messages in place, with the two keys that the
//! handshake yields: one for each direction of the connection, whose nonces are a counter. No other
//! connection has the same keys, so even a process with the shared key can neither read nor change
//! what two others send each other, unless it was between them when they met.
//!
//! Without a key, all traffic is unencrypted. A [`Mesh`] accepts that only if all addresses [are
//! local](Address::is_local), or if the caller allows it ([`MeshOptions::allow_clear`]). For a
//! [`ControlServer`] and an [`open_session`], the caller must decide, based on the address. A Unix
//! socket needs no key, because its file admits only processes of the same user, and root's. A
//! loopback port admits every process on the machine.
//!
//! # Cost of unauthenticated peers
//! - Such a peer can hold slots for five seconds, each of which takes a thread and two descriptors.
//!   There are twice as many slots as members plus eight in a meeting, and [`GREETINGS_MAX`] at a
//!   control server. That keeps no member out: when all slots are taken, the oldest one of the host
//!   that has the most of them is closed. To keep a member out, the peer would have to connect so
//!   often that all slots change hands during that member's greeting, up to its hello, which takes
//!   two round trips with a key and one without.
//! - If the group has a key, the peer can make a process read 256 bytes and compute a few hashes. A
//!   peer that has recorded the first message of a member's handshake may replay it, which costs
//!   two multiplications on the curve, and one message of 64 KiB that cannot be decrypted. Without
//!   a key, any process may send such a message, and a process that knows the group's digest counts
//!   as authenticated.
//! - The peer can answer at the address of a member that has not started yet. Before it has proved
//!   that it has the key, nothing that it sends ends the meeting: members retry until their time
//!   limit, and report what answered ([`MeetingHandler::met_stranger`]).
//! - Each refusal of the peer writes one line to the log (at `info`; at `debug` if the peer
//!   disconnects by itself).
//!
//! Beyond that, a process neither allocates memory for the peer's data nor trusts that data. An id
//! that is not one of a server's nodes is refused before any state is kept for it, unless the
//! client is an operator. An admitted client counts as authenticated. At most [`CLIENTS_MAX`] such
//! clients may be with the callbacks of a control server at the same time, with [`PEER_SLOTS`] of
//! these slots reserved for peers; the next client receives [`Refusal::Busy`]. So does an external
//! client whose connection takes one of the last descriptors of the process: half of the descriptor
//! limit, but at most 256, is reserved for members, operators and files. The loss of a host is
//! detected within a minute. The callback decides how long each client may stay, using the time
//! limits of its [`Session`].

mod address;
mod channel;
pub mod client_messages;
mod connection;
mod connection_limit;
mod control_server;
mod deadline;
mod descriptors;
mod error;
mod greeting;
#[cfg_attr(not(feature = "keys"), path = "no_handshake.rs")]
mod handshake;
mod hello;
#[cfg(any(test, fuzzing))]
pub mod hostile_bytes;
mod identity;
mod key;
mod listener;
mod meet;
mod meeting_handler;
mod mesh;
mod open_session;
mod operator_wait;
mod options;
mod plain_server;
mod queued_session;
mod refusal;
mod session;
mod session_stream;
mod source;
mod stream;
#[cfg(feature = "keys")]
mod transport;
mod wakeup;

pub use address::{Address, HostAddress, HostAddressError};
pub use channel::MESSAGE_MAX;
pub use connection::{
    Cipher, CipherError, Connection, RECORD_CONTENT_MAX, RECORD_HEADER, RECORD_MAX, RECORD_OVERHEAD,
};
pub use control_server::{CLIENTS_MAX, Client, ControlServer, GREETINGS_MAX, PEER_SLOTS};
pub use error::MeshError;
pub use hello::{Purpose, VERSION};
pub use identity::{Identity, incarnation};
pub use key::{KeyError, SharedKey};
pub use listener::Listener;
pub use meeting_handler::MeetingHandler;
pub use mesh::Mesh;
pub use open_session::{OpenSessionError, OpenedSession, open_session};
pub use options::MeshOptions;
pub use plain_server::{PlainConnection, serve_plain};
pub use queued_session::QueuedSession;
pub use refusal::Refusal;
pub use session::{Session, SessionError};
pub use source::Source;
pub use wakeup::Wakeup;
