//! What goes wrong: one enum an operation.

use std::time::Duration;

use tramontane_control::HostAddress;
use tramontane_control::client_messages::ClientRefusal;

/// Why addresses of members cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// There is none.
    #[error("no address of a member is given; give one or more")]
    None,
    /// It is no address.
    #[error(
        "{0} is no address of a member; give HOST:PORT with the member's own host, or the path of a \
         Unix socket"
    )]
    Malformed(String),
}

/// Why a client did not come to a member.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No address was given.
    #[error("no address of a member is given; give one or more")]
    NoAddress,
    /// What would be said could be read on the way.
    #[error(
        "{0} can be reached from outside, and there is no key; give the group's key, or allow \
         clear text"
    )]
    KeyNeeded(HostAddress),
    /// A name that is too long, or has characters that cannot be shown.
    #[error("the client's name is longer than 64 bytes, or has control characters; give another")]
    Name,
    /// No member took the client in time.
    #[error("no member took this client in {waited:?}; the last one said: {why}")]
    NoMember {
        /// For how long it was tried.
        waited: Duration,
        /// What was wrong at the address that was tried last.
        why: String,
    },
    /// All addresses were tried, and none will ever do.
    #[error("no member takes this client: {0}")]
    Hopeless(String),
    /// The group does not take this client.
    #[error("the member refused this client: {0}")]
    Refused(ClientRefusal),
    /// The subgroup is a reserved one, and a view has closed it.
    #[error("a view has closed the subgroup; open it, or follow another")]
    Closed,
    /// The application's state is longer than a client takes over.
    #[error("the application's state is longer than {0} bytes; let the application keep less")]
    StateTooLarge(usize),
    /// The system has no thread or descriptor left.
    #[error("cannot start a client: {0}; free what ran out")]
    System(String),
}

/// Why a line was not published, or what became of it is not known.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The line is longer than the group takes.
    #[error("a line of {bytes} bytes is longer than {limit}; send less, or raise message_max")]
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// The most there may be.
        limit: usize,
    },
    /// As many lines are under way as may be.
    #[error("too many lines are under way; wait for room")]
    Full,
    /// The time was up. The line is under way.
    #[error("the line has not reached its level in time; wait for longer")]
    TimeUp,
    /// The group does not take this client any more. See [`ClientRefusal::LeaseOver`].
    #[error("the member refused this client: {0}")]
    Refused(ClientRefusal),
    /// No member took this client, for longer than the group remembers it.
    #[error(
        "no member took this client in {waited:?}, and the group forgets it: what was not \
         acknowledged may have been delivered; the last one said: {why}"
    )]
    NoMember {
        /// For how long it was tried.
        waited: Duration,
        /// What was wrong at the address that was tried last.
        why: String,
    },
    /// The group has lost lines that it had delivered, and does not have what comes after them.
    #[error(
        "the group has lost delivered lines, from number {from} to {to}; publish them as a new \
         client, and wait for a level that outlives such a loss"
    )]
    Lost {
        /// The first.
        from: u64,
        /// The first that it has not lost.
        to: u64,
    },
    /// The publisher was closed.
    #[error("the publisher was closed; open another")]
    Closed,
}

/// Why nothing more comes to a subscriber.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The time was up. More may come.
    #[error("no message came in time; wait for longer")]
    TimeUp,
    /// No member took the subscriber.
    #[error(transparent)]
    Open(#[from] OpenError),
}
