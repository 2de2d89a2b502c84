//! Connections between all members, once they have met.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tramontane_core::ids::{NodeId, Rank};

use crate::channel::{Channel, MESSAGE_MAX};
use crate::connection::Connection;
use crate::deadline::{ChannelError, Deadline};
use crate::error::MeshError;
use crate::meet;
use crate::meeting_handler::{MeetingHandler, NoHandler};
use crate::options::MeshOptions;
use crate::session::Session;

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
    /// Returns [`MeshError`]. Each error names the member and says what to do.
    pub fn join(options: MeshOptions<'m>) -> Result<Self, MeshError> {
        let digest = options.digest;
        Self::join_with(options, &NoHandler(digest))
    }

    /// Meets all other members, and reports to `handler` while the meeting lasts.
    ///
    /// # Errors
    /// Fails in the same cases as [`Mesh::join`].
    pub fn join_with(
        options: MeshOptions<'m>,
        handler: &dyn MeetingHandler,
    ) -> Result<Self, MeshError> {
        check(&options)?;
        let (members, cancel) = (options.members.to_vec(), options.cancel);
        let until = Deadline::new(options.time_limit, cancel).until;
        let (met, own) = meet::all(options, until, handler)?;
        let incarnations =
            met.iter().map(|met| met.as_ref().map_or(own, |met| met.incarnation)).collect();
        let channels = met.into_iter().map(|met| met.map(|met| met.channel)).collect();
        Ok(Self { channels, incarnations, members, until, cancel })
    }

    /// Returns the incarnation of each member's process, by rank, including the local process (see
    /// [`incarnation`](crate::incarnation)).
    #[must_use]
    pub fn incarnations(&self) -> &[u64] {
        &self.incarnations
    }

    /// Sends each peer its message, and receives one from each peer. Both lists are ordered by
    /// rank, with an empty message for the local rank.
    ///
    /// # Errors
    /// Returns [`MeshError::TooLong`] for a message above [`MESSAGE_MAX`]; otherwise, returns the
    /// failure of a peer.
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
            let deadline = Deadline { until: self.until, stop: self.cancel };
            channel.send(&bytes, deadline).map_err(|error| lost(&self.members, rank, &error))?;
        }
        let mut answers = Vec::with_capacity(self.channels.len());
        for (rank, channel) in (0..).map(Rank).zip(&mut self.channels) {
            let deadline = Deadline { until: self.until, stop: self.cancel };
            answers.push(match channel {
                None => Vec::new(),
                Some(channel) => {
                    channel.receive(deadline).map_err(|error| lost(&self.members, rank, &error))?
                }
            });
        }
        Ok(answers)
    }

    /// Waits until every member has called this function.
    ///
    /// # Errors
    /// Fails in the same cases as [`Mesh::exchange`].
    pub fn barrier(&mut self) -> Result<(), MeshError> {
        const HERE: &[u8] = b"here";
        let answers = self.exchange(|_| HERE.to_vec())?;
        for ((rank, answer), channel) in (0..).map(Rank).zip(&answers).zip(&self.channels) {
            if channel.is_some() && answer != HERE {
                return Err(lost(&self.members, rank, &ChannelError::Malformed));
            }
        }
        Ok(())
    }

    /// Returns the connections, by rank, for use as streams. `None` for the local rank, and for a
    /// Unix socket. All earlier traffic on them has been read.
    #[must_use]
    pub fn into_connections(self) -> Vec<Option<Connection>> {
        self.channels.into_iter().map(|channel| channel.and_then(Connection::new)).collect()
    }

    /// Returns a session with each other member, by rank; `None` for the local rank.
    #[must_use]
    pub fn into_sessions(self) -> Vec<Option<Session>> {
        self.channels
            .into_iter()
            .map(|channel| channel.map(|channel| Session::new(channel, None)))
            .collect()
    }
}

/// Returns the error for the failure of a peer during an exchange.
fn lost(members: &[NodeId], rank: Rank, error: &ChannelError) -> MeshError {
    let peer = members.get(rank.index()).copied().unwrap_or_default();
    match error {
        ChannelError::Stopped => MeshError::Cancelled,
        ChannelError::TimeUp => MeshError::Silent { peer },
        ChannelError::Closed | ChannelError::Io(_) => MeshError::PeerGone { peer },
        ChannelError::Malformed | ChannelError::WrongKey => MeshError::Malformed { peer },
    }
}

/// Checks for errors that can be found before any attempt.
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
