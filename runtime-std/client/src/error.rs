//! The errors of a client, with one enum per operation.

use std::time::Duration;

use tramontane_control::HostAddress;
use tramontane_control::client_messages::ClientRefusal;

/// The reasons why members' addresses cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// No address was given.
    #[error("no member address is given; give one or more")]
    None,
    /// The text is not an address.
    #[error(
        "{0} is not a member's address; give HOST:PORT with the member's own host, or the path \
         of a Unix socket"
    )]
    Malformed(String),
}

/// The reasons why a client could not connect to a member.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No address was given.
    #[error("no member address is given; give one or more")]
    NoAddress,
    /// The connection would leave this machine unencrypted.
    #[error(
        "{0} is not on this machine, and no key is given; give the group's key, or allow \
         unencrypted connections"
    )]
    KeyNeeded(HostAddress),
    /// The name is too long, or contains characters that cannot be displayed.
    #[error(
        "the client's name is longer than 64 bytes, or contains control characters; choose a \
         different name"
    )]
    Name,
    /// No member accepted the client in time.
    #[error("no member accepted this client within {waited:?}; the last problem was: {why}")]
    NoMember {
        /// The time since the first attempt.
        waited: Duration,
        /// The problem at the last address.
        why: String,
    },
    /// All addresses were tried, and retrying cannot help.
    #[error("no member accepts this client: {0}")]
    Hopeless(String),
    /// The group refuses this client.
    #[error("the member refused this client: {0}")]
    Refused(ClientRefusal),
    /// The subgroup is reserved, and a view has closed it.
    #[error("the subgroup has been closed; reopen it, or follow a different subgroup")]
    Closed,
    /// The application's state exceeds the size that a client accepts.
    #[error("the application's state is larger than {0} bytes; make it smaller")]
    StateTooLarge(usize),
    /// The system has no thread or descriptor available.
    #[error("cannot start a client: {0}; raise the limits of this process (ulimit -n, -u)")]
    System(String),
}

/// The reasons why a line was not published, or why its outcome is unknown.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The line exceeds the length that the group accepts.
    #[error(
        "a line of {bytes} bytes exceeds the limit of {limit}; send shorter lines, or raise \
         message_max"
    )]
    TooLong {
        /// The length of the line in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        limit: usize,
    },
    /// The maximum number of lines is already in flight.
    #[error("too many lines are in flight; wait until some have been acknowledged")]
    Full,
    /// The time limit has passed. The line is still in flight.
    #[error("the line did not reach the requested level in time; allow more time")]
    TimeUp,
    /// The group no longer accepts this client. See [`ClientRefusal::LeaseOver`].
    #[error("the member refused this client: {0}")]
    Refused(ClientRefusal),
    /// No member has accepted this client for longer than the group remembers a client.
    #[error(
        "no member accepted this client within {waited:?}, so the group has forgotten it, and \
         unacknowledged lines may have been delivered; the last problem was: {why}"
    )]
    NoMember {
        /// The time since the last member was lost.
        waited: Duration,
        /// The problem at the last address.
        why: String,
    },
    /// The group has lost lines that it had delivered, and lacks the lines after them.
    #[error(
        "the group has lost delivered lines, from number {from} up to {to}; publish them again \
         as a new client, and wait for a level that survives such a loss"
    )]
    Lost {
        /// The number of the first lost line.
        from: u64,
        /// The number of the line after the last lost one.
        to: u64,
    },
    /// The publisher has been closed.
    #[error("the publisher has been closed; open a new one")]
    Closed,
}

/// The reasons why a subscriber receives no more messages.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The time limit has passed. More messages may arrive.
    #[error("no message arrived in time; allow more time")]
    TimeUp,
    /// No member accepted the subscriber.
    #[error(transparent)]
    Open(#[from] ConnectError),
}
