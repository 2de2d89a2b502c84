//! The faults that a run may find.

use std::fmt;

/// The fault that a run found in a state machine. Text from the state machine is formatted with
/// [`Debug`](fmt::Debug).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// Two members answered a command differently.
    AnswersDiffer {
        /// The command.
        command: String,
        /// The answer at the member that applied the command first.
        first: String,
        /// The answer at another member.
        other: String,
    },
    /// Two members applied the same commands, and have different states.
    StatesDiffer {
        /// The state at one member.
        first: String,
        /// The state at another member.
        other: String,
    },
    /// A state is changed by encoding and decoding, or cannot be decoded.
    StateChangedInTransfer {
        /// The state at the member that encoded it.
        before: String,
        /// The state at the member that joins, or the error.
        after: String,
    },
    /// A command is changed by encoding and decoding, or cannot be decoded.
    CommandChangedInTransfer {
        /// The command as it was proposed.
        before: String,
        /// The command at the members, or the error.
        after: String,
    },
    /// A node that restarted has a different state: it applied all commands again from its log, or
    /// a snapshot and the commands after it.
    RestartDiffers {
        /// The state of a member that applied all commands.
        before: String,
        /// The state at the node that restarted.
        after: String,
    },
    /// The invariant does not hold.
    Invariant {
        /// The last command.
        command: String,
        /// The invariant's own words.
        what: String,
    },
    /// The model answers differently.
    ModelDiffers {
        /// The command.
        command: String,
        /// The answer of the state machine.
        answer: String,
        /// The answer of the model.
        model: String,
    },
    /// `apply` panicked.
    Panicked {
        /// The command.
        command: String,
        /// The message of the panic.
        message: String,
    },
    /// The group broke its own promise. This is a fault of Tramontane, not of the state machine:
    /// please report it with its seed.
    Order {
        /// The fault.
        what: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnswersDiffer { command, first, other } => {
                write!(out, "members answer {command} differently: {first}, and {other}")
            }
            Self::StatesDiffer { first, other } => {
                write!(out, "members that applied the same commands differ:\n  {first}\n  {other}")
            }
            Self::StateChangedInTransfer { before, after } => {
                write!(
                    out,
                    "a joining member receives a different state:\n  sent {before}\n  \
                     received {after}"
                )
            }
            Self::CommandChangedInTransfer { before, after } => {
                write!(out, "the command {before} arrives as {after}")
            }
            Self::RestartDiffers { before, after } => write!(
                out,
                "a node that restarts from its log differs:\n  before {before}\n  after {after}"
            ),
            Self::Invariant { command, what } => {
                write!(out, "the invariant does not hold after {command}: {what}")
            }
            Self::ModelDiffers { command, answer, model } => {
                write!(out, "the answer to {command} is {answer}, and the model's is {model}")
            }
            Self::Panicked { command, message } => {
                write!(out, "apply panics on {command}: {message}")
            }
            Self::Order { what } => write!(out, "the group broke its own promise: {what}"),
        }
    }
}

impl std::error::Error for Violation {}
