//! The reasons why there are no answers, or no replica or client.

use std::time::Duration;

use tramontane_runtime::shards::{ClientError, StartError};

/// The reason why a call has no answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswers {
    /// The time limit of the wait passed. The command may still be applied.
    #[error(
        "not all groups answered within {0:?}, because one is slow or lacks a majority; the \
         command may still be applied: read the state before you propose it again"
    )]
    TimedOut(Duration),
    /// The command was not sent before this client ended. No group will ever apply it.
    #[error("no group applies the command, because {0}")]
    NotSent(ClientError),
    /// The command was sent, but this client ended before all groups had answered. All groups will
    /// apply it, or none.
    #[error(
        "it is unknown whether the groups apply the command, because {0}; read the state before \
         you propose it again"
    )]
    Unknown(ClientError),
    /// A group on the command's path has had no majority for longer than the lease of clients. The
    /// command was sent before that, and may still be applied, by all of its groups or by none.
    #[error(
        "group \"{group}\" has had no majority for {lease:?}, and the command may still be applied; \
         start the group's replicas, and read the state before you propose the command again"
    )]
    NoMajority {
        /// The name of the group.
        group: String,
        /// The lease.
        lease: Duration,
    },
    /// A group on the command's path has had no majority for longer than the lease of clients. The
    /// command was not sent.
    #[error(
        "the command was not sent, because group \"{group}\" has had no majority for {lease:?}; \
         start the group's replicas"
    )]
    NotSentWithoutMajority {
        /// The name of the group.
        group: String,
        /// The lease.
        lease: Duration,
    },
    /// The set of groups is empty, or one is not in the overlay. The command was not sent.
    #[error("the command is for no group of the overlay; name at least one of its groups")]
    NoSuchGroup,
    /// The command is too large for the overlay. It was not sent.
    #[error(
        "a command of {bytes} bytes exceeds the limit of {limit}; propose smaller commands, or \
         raise message_max"
    )]
    TooLarge {
        /// The size of the encoded command, in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Too many calls of this client are waiting to be sent. The command was not sent.
    #[error(
        "{waiting} calls of this client are waiting to be sent; wait for some of their answers \
         before you propose more"
    )]
    Overloaded {
        /// The number of waiting calls.
        waiting: usize,
    },
    /// The command cannot be encoded. It was not sent.
    #[error("the command cannot be encoded: {0}; change its type")]
    NotEncoded(String),
    /// A group's replicas could not read the command, so that group has not applied it.
    #[error(
        "group \"{group}\" did not apply the command, because {why}; run the same version of the \
         program at replicas and clients"
    )]
    Unread {
        /// The name of the group.
        group: String,
        /// The reason given by a replica.
        why: String,
    },
    /// A group's answer is longer than the overlay's limit. All groups have applied the command.
    #[error(
        "the command was applied, but the answer of group \"{group}\" has {bytes} bytes, and the \
         limit is {limit}; return shorter answers, or raise answer_max"
    )]
    AnswerTooLarge {
        /// The name of the group.
        group: String,
        /// The size of the encoded answer, in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u32,
    },
    /// A group's answer could not be encoded or decoded. All groups have applied the command.
    #[error(
        "the command was applied, but the answer of group \"{group}\" cannot be read, because \
         {why}; change its type, and run the same version of the program at replicas and clients"
    )]
    AnswerUnread {
        /// The name of the group.
        group: String,
        /// The reason.
        why: String,
    },
}

/// The reason why a replica or a client with a state machine did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardNotStarted {
    /// This process did not become a replica or client.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The overlay has no room for answers.
    #[error(
        "replicas cannot answer, because answer_max is 0; set it in the overlay file to the size \
         of the largest answer in bytes"
    )]
    AnswerMax,
    /// The system has no further thread.
    #[error("cannot start: {0}; resolve the cause, and try again")]
    Io(#[from] std::io::Error),
}
