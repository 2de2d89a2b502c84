//! The reasons why there is no answer, or no replicated state machine.

use std::time::Duration;

use tramontane_runtime::group::{NotLogged, StartError};
use tramontane_runtime::member::Stopped;

use super::versioned::StateVersion;

/// The reason why a proposal or a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnswered {
    /// The time limit of the wait passed. A command may still be applied.
    #[error(
        "no answer arrived within {0:?}, because a member is slow or stalled; the command may \
         still be applied: read the state before you propose it again, or allow more time"
    )]
    TimedOut(Duration),
    /// The command was not sent before this member ended. No member has applied it, or ever will.
    #[error("no member applies the command, because {0}; propose it at another member")]
    NotSent(Stopped),
    /// The command was sent, but this member ended before applying it. The other members may or may
    /// not apply it.
    #[error(
        "it is unknown whether other members apply the command, because {0}; read the state at \
         another member before you propose it again"
    )]
    Unknown(Stopped),
    /// The command was applied here, but this member ended before it knew whether the command is
    /// durable.
    #[error(
        "the command was applied, but it is unknown whether it is durable, because {0}; read the \
         state at another member"
    )]
    NotDurable(Stopped),
    /// This member ended before the query could read the state.
    #[error("the state cannot be read, because {0}; read it at another member")]
    NotRead(Stopped),
    /// Durability was requested in a group that has no logs. The command was not sent.
    #[error(transparent)]
    NotLogged(#[from] NotLogged),
    /// The version is older than the history of this member.
    #[error(
        "this member's history begins with version {} at {} us; ask for a later version, or raise \
         history",
        oldest.number,
        oldest.time_us
    )]
    NotKept {
        /// The oldest version that this member has.
        oldest: StateVersion,
    },
    /// The version does not exist yet, or a command with an earlier time may still come.
    #[error(
        "the newest version is {} at {} us; ask again later",
        newest.number,
        newest.time_us
    )]
    NotYet {
        /// The newest version of this member.
        newest: StateVersion,
    },
    /// This node may not send, so it can neither propose nor make linearizable queries.
    #[error(
        "this node is not a sender of its group; propose at another node, or add this one to \
         senders in the group file of all members"
    )]
    NotASender,
    /// The command is too large for the group.
    #[error(
        "a command of {bytes} bytes exceeds the limit of {limit}; propose smaller commands, raise \
         message_max, or allow large messages with large_max"
    )]
    TooLarge {
        /// The size of the encoded command, in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Too many commands of this member are waiting to be sent. The command was not sent.
    #[error(
        "{waiting} commands of this member are waiting to be sent; wait for some of their answers \
         before you propose more"
    )]
    Overloaded {
        /// The number of waiting commands.
        waiting: usize,
    },
    /// The command cannot be encoded.
    #[error("the command cannot be encoded: {0}; change its type")]
    NotEncoded(String),
    /// There is no memory for a large command.
    #[error("a large command has no memory: {0}")]
    NoMemory(String),
}

/// The reason why a replicated state machine did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotStarted {
    /// This process did not become a member.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The group does not have exactly one subgroup.
    #[error(
        "the group has {0} subgroups, but a replicated state machine needs one; use a group for \
         each state machine"
    )]
    Subgroups(usize),
    /// The subgroup is unordered or reserved.
    #[error(
        "the members of subgroup \"{0}\" do not receive all messages in one order; remove \
         unordered and reserved from the group file"
    )]
    NoOrder(String),
    /// This node does not belong to the subgroup.
    #[error("node {0} is not a member of the subgroup; add it to members in the group file")]
    NotAMember(u32),
    /// The initial state cannot be encoded.
    #[error("the initial state cannot be encoded: {0}; change its type")]
    NotEncoded(String),
    /// A system call failed.
    #[error("cannot start: {0}; resolve the cause, and try again")]
    Io(#[from] std::io::Error),
}
