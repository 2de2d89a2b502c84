//! How the members of a group find each other, over TCP or Unix sockets, before the first write and while the group runs.
//!
//! Nothing here knows of RDMA or of shared memory: any fabric can start this way, and there is one control plane for all.
//!
//! - **Meeting** ([`Mesh`]). A member listens, connects to all members of lower rank with retries until its time is up,
//!   and accepts those of higher rank. Each pair compares protocol version, view, layout digest and node ids. Then every
//!   member may [`Mesh::exchange`] messages with all others, any number of times, and stand at a [`Mesh::barrier`]
//!   (VIE-12). At the end the connections become [`Lifeline`]s: they close when a process ends, however it ends. Or they
//!   go on as the streams of a fabric over TCP ([`Mesh::into_connections`]), or for talks ([`Mesh::into_talks`]).
//! - **Visiting** ([`Door`], [`visit`]). A process keeps a door open as long as it runs. Nodes come there to join, peers of
//!   a later view to connect, operators to ask; each gets a [`Talk`], if both have the key and the group's digest. A talk
//!   over TCP may become the stream of a fabric.
//!
//! The same [`Listener`] serves both, one after the other: whoever comes to a meeting for something else is told
//! [`Refusal::NotRunning`], unless it asks and somebody attends the meeting ([`Attendant`]); and whoever comes to a door to meet is told [`Refusal::Running`].
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
//! With a [`SharedKey`], the handshake is `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` by the `snow` crate. All
//! members hold one key and no other identity, so there are no static keys (`NN`); `psk0` proves the key in
//! the very first message, so that a stranger costs a few hashes. Fresh Diffie-Hellman keys on both sides keep
//! what was exchanged secret even if the shared key is lost later (HAL-7). Who has the key may claim to be
//! any member: it keeps strangers out, and does not tell members apart.
//!
//! Without a key everything crosses in clear. A [`Mesh`] takes that only where all addresses [are local](Address::is_local),
//! or where the caller says that it may ([`MeshOptions::allow_clear`]); for a [`Door`] and a [`visit`] the caller decides by
//! the address. A Unix socket needs no key: its file lets in processes of the same user alone, and root's. A loopback port
//! lets in every process of the machine.
//!
//! # What a stranger can make us do
//! - Hold places: twice the members and eight in a meeting, [`GREETINGS_MAX`] at a door, each a thread and two
//!   descriptors, for five seconds. It keeps nobody out by that: when all are taken, one of the host with the most
//!   of them is closed, the one that has been there longest. To keep a member out it has to come so often that all
//!   places change hands while that member's first words cross, up to its hello: two round trips with a key, one
//!   without.
//! - Have us read, with a key, 256 bytes and compute a few hashes. Who recorded the first message of a member's handshake
//!   may repeat it; then we compute two products on the curve, and read one message of 64 KiB that does not open. Without a
//!   key anyone may have us read such a message, and whoever knows the group's digest is no stranger to us.
//! - Answer at the address of a member that has not started yet. What it says before it has shown the key ends nothing:
//!   members try on until their time is up, and tell what answered ([`Attendant::met_stranger`]).
//! - Have us write to the log a line for each time it is sent away (at `info`; at `debug` if it just goes).
//!
//! Nothing that it sends is allocated for beyond that, or believed. An id that is not one of a door's nodes is
//! refused before anything is kept for it, unless it only asks. Who is let in is no stranger: at most
//! [`VISITORS_MAX`] of them are with the callbacks of a door at once, [`PEER_PLACES`] of them peers, and the next is
//! told [`Refusal::Busy`]. A host that is gone is noticed within a minute. How long each may stay there is for the
//! callback to say, with the time limits of its [`Talk`].

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
mod patience;
mod refusal;
mod stream;
mod talk;
mod visit;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, Rank, ViewId};

pub use address::Address;
pub use attendant::Attendant;
pub use channel::MESSAGE_MAX;
pub use connection::{
    Cipher, CipherError, Connection, RECORD_CONTENT_MAX, RECORD_HEADER, RECORD_MAX,
};
pub use door::{Door, GREETINGS_MAX, PEER_PLACES, VISITORS_MAX, Visitor};
pub use error::MeshError;
pub use hello::Purpose;
pub use identity::{Identity, incarnation};
pub use key::{KeyError, SharedKey};
pub use lifeline::{Lifeline, Sign};
pub use listener::Listener;
pub use refusal::Refusal;
pub use talk::{Talk, TalkError};
pub use visit::{VisitError, Visited, visit};

use attendant::Unattended;
use channel::Channel;
use patience::{ChannelError, Patience};

/// Who takes part, and how.
#[derive(Debug)]
pub struct MeshOptions<'m> {
    /// The own rank.
    pub own: Rank,
    /// The members' node ids, in rank order.
    pub members: &'m [NodeId],
    /// Where each listens, in rank order.
    pub addresses: &'m [Address],
    /// A socket that listens at the own address already, if there is one. It is closed when all have met; to go on
    /// listening with a [`Door`], keep another handle of it ([`Listener::try_clone`]).
    pub listener: Option<Listener>,
    /// The life of this process, to be the same at its [`Door`] (see [`incarnation`]); none takes a new one.
    pub incarnation: Option<u64>,
    /// The view that is to start: members of another one are refused.
    pub view: ViewId,
    /// The layout's digest: members with another one are refused, both ends knowing why.
    pub digest: u64,
    /// The key that all members share.
    pub key: Option<SharedKey>,
    /// Whether, without a key, addresses may be used that are not local (see [`Address::is_local`]).
    pub allow_clear: bool,
    /// How long to wait for all members.
    pub time_limit: Duration,
    /// Ends the wait when it becomes true.
    pub cancel: &'m AtomicBool,
}

/// Connections to all other members.
#[derive(Debug)]
pub struct Mesh<'m> {
    channels: Vec<Option<Channel>>,
    incarnations: Vec<u64>,
    members: Vec<NodeId>,
    until: Instant,
    cancel: &'m AtomicBool,
}

impl<'m> Mesh<'m> {
    /// Meets all other members.
    ///
    /// # Errors
    /// [`MeshError`]; each says who is meant and what to do.
    pub fn join(options: MeshOptions<'m>) -> Result<Self, MeshError> {
        let digest = options.digest;
        Self::join_attended(options, &Unattended(digest))
    }

    /// The same, with somebody who hears of the meeting while it lasts.
    ///
    /// # Errors
    /// As [`Mesh::join`].
    pub fn join_attended(
        options: MeshOptions<'m>,
        attendant: &(impl Attendant + ?Sized),
    ) -> Result<Self, MeshError> {
        check(&options)?;
        let (members, cancel) = (options.members.to_vec(), options.cancel);
        let until = Patience::new(options.time_limit, cancel).until;
        let (met, own) = meet::all(options, until, &attendant)?;
        let incarnations =
            met.iter().map(|met| met.as_ref().map_or(own, |met| met.incarnation)).collect();
        let channels = met.into_iter().map(|met| met.map(|met| met.channel)).collect();
        Ok(Self { channels, incarnations, members, until, cancel })
    }

    /// The life of each member's process, by rank, the own one's too (see [`incarnation`]).
    #[must_use]
    pub fn incarnations(&self) -> &[u64] {
        &self.incarnations
    }

    /// Gives each peer its message, and takes one from each; both by rank, and empty for the own.
    ///
    /// # Errors
    /// [`MeshError::TooLong`] for a message above [`MESSAGE_MAX`]; else what happened to a peer.
    pub fn exchange(
        &mut self,
        mut message: impl FnMut(Rank) -> Vec<u8>,
    ) -> Result<Vec<Vec<u8>>, MeshError> {
        for (rank, channel) in (0..).map(Rank).zip(&mut self.channels) {
            let Some(channel) = channel else { continue };
            let bytes = message(rank);
            if bytes.len() > MESSAGE_MAX {
                return Err(MeshError::TooLong { bytes: bytes.len() });
            }
            let patience = Patience { until: self.until, stop: self.cancel };
            channel.send(&bytes, patience).map_err(|error| lost(&self.members, rank, &error))?;
        }
        let mut answers = Vec::with_capacity(self.channels.len());
        for (rank, channel) in (0..).map(Rank).zip(&mut self.channels) {
            let patience = Patience { until: self.until, stop: self.cancel };
            answers.push(match channel {
                None => Vec::new(),
                Some(channel) => {
                    channel.receive(patience).map_err(|error| lost(&self.members, rank, &error))?
                }
            });
        }
        Ok(answers)
    }

    /// Waits until every member stands here.
    ///
    /// # Errors
    /// As [`Mesh::exchange`].
    pub fn barrier(&mut self) -> Result<(), MeshError> {
        const HERE: &[u8] = b"here";
        let answers = self.exchange(|_| HERE.to_vec())?;
        for ((rank, answer), channel) in (0..).map(Rank).zip(&answers).zip(&self.channels) {
            if channel.is_some() && answer != HERE {
                return Err(lost(&self.members, rank, &ChannelError::Garbled));
            }
        }
        Ok(())
    }

    /// The connections themselves, by rank, to be used as streams; none for the own rank, and over a Unix socket.
    /// Nothing of what was said on them so far is left to be read.
    #[must_use]
    pub fn into_connections(self) -> Vec<Option<Connection>> {
        self.channels.into_iter().map(|channel| channel.and_then(Connection::new)).collect()
    }

    /// The connections, by rank, to talk on further, two by two; none for the own rank.
    #[must_use]
    pub fn into_talks(self) -> Vec<Option<Talk>> {
        self.channels
            .into_iter()
            .map(|channel| channel.map(|channel| Talk::new(channel, None)))
            .collect()
    }

    /// What is left of the connections: signs of life, by rank. A host that is gone without a word is noticed
    /// after about `silence`, and no sooner than after some seconds.
    #[must_use]
    pub fn into_lifelines(self, silence: Duration) -> Vec<Option<Lifeline>> {
        self.channels
            .into_iter()
            .map(|channel| channel.map(|channel| Lifeline::new(channel, silence)))
            .collect()
    }
}

/// What became of a peer in the middle of an exchange.
fn lost(members: &[NodeId], rank: Rank, error: &ChannelError) -> MeshError {
    let peer = members.get(rank.index()).copied().unwrap_or_default();
    match error {
        ChannelError::Stopped => MeshError::Cancelled,
        ChannelError::TimeUp => MeshError::Silent { peer },
        ChannelError::Closed | ChannelError::Io(_) => MeshError::PeerGone { peer },
        ChannelError::Garbled | ChannelError::WrongKey => MeshError::Garbled { peer },
    }
}

/// What can be seen to be wrong before anything is tried.
fn check(options: &MeshOptions<'_>) -> Result<(), MeshError> {
    let MeshOptions { own, members, addresses, key, allow_clear, .. } = options;
    if own.index() >= members.len() || addresses.len() != members.len() {
        let (members, addresses) = (members.len(), addresses.len());
        return Err(MeshError::Addresses { own: *own, members, addresses });
    }
    for (index, id) in members.iter().enumerate() {
        if members[..index].contains(id) {
            return Err(MeshError::DuplicateId { id: *id, address: addresses[index].clone() });
        }
    }
    let exposed = addresses.iter().find(|address| !address.is_local());
    match exposed {
        Some(address) if key.is_none() && !allow_clear => {
            Err(MeshError::KeyNeeded { address: address.clone() })
        }
        _ => Ok(()),
    }
}
