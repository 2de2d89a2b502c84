//! Reasons for the failure of a call: DDS's return codes, with explanations.

use std::time::Duration;

use tramontane::group::DescriptionError;
use tramontane::{SendError, StartError, Stopped};
use tramontane_client::{ConnectError, PublishError};

use crate::qos::PolicyId;

/// The reason that a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DdsError {
    /// An unsupported policy: DDS's `RETCODE_UNSUPPORTED`.
    #[error("{policy:?} cannot have this value: {why}")]
    UnsupportedPolicy {
        /// The policy.
        policy: PolicyId,
        /// The reason why the value is not supported, and an alternative.
        why: &'static str,
    },
    /// Policies that contradict each other or the topic: `RETCODE_INCONSISTENT_POLICY`.
    #[error("{policy:?} contradicts another setting: {why}")]
    InconsistentPolicy {
        /// The policy.
        policy: PolicyId,
        /// The reason and a remedy.
        why: &'static str,
    },
    /// The call is not allowed on this object: `RETCODE_PRECONDITION_NOT_MET`.
    #[error("{0}")]
    PreconditionNotMet(String),
    /// A listener made a call that may wait or lock the topic: `RETCODE_ILLEGAL_OPERATION`.
    #[error("{0} cannot be called from a listener; call it from a thread of the application")]
    IllegalOperation(&'static str),
    /// A limit on kept samples has been reached: `RETCODE_OUT_OF_RESOURCES`.
    #[error("{0}")]
    OutOfResources(&'static str),
    /// The topic cannot be created: `RETCODE_OUT_OF_RESOURCES`.
    #[error("{0}")]
    NoPlace(String),
    /// The description of a topic does not fit into a discovery message.
    #[error(
        "the topic's description has {bytes} bytes, but the limit is {limit}; shorten its names or \
         its topic_data"
    )]
    TooLong {
        /// Size of the description in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: u32,
    },
    /// The topic has been deleted: `RETCODE_ALREADY_DELETED`.
    #[error("the topic has been deleted; re-create it, with new writers and readers")]
    TopicDeleted,
    /// There was no room, or no answer, within the time limit: `RETCODE_TIMEOUT`.
    #[error("the call timed out after {0:?}; try again, or allow more time")]
    Timeout(Duration),
    /// The participant is no longer a member of its domain: `RETCODE_ALREADY_DELETED`.
    #[error("the participant has ended: {0}")]
    Ended(#[from] Stopped),
    /// No member of the domain accepts this participant, or no member does any longer:
    /// `RETCODE_ALREADY_DELETED`.
    #[error("a participant outside: {0}")]
    Outside(#[from] ConnectError),
    /// The sample did not reach the domain, or may not have: `RETCODE_ALREADY_DELETED`.
    #[error("a writer outside: {0}")]
    NotPublished(#[from] PublishError),
    /// A sample is larger than the topic allows.
    #[error("the sample has {bytes} bytes, but the topic's limit is {limit}; raise its sample_max")]
    TooLarge {
        /// Size of the sample in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The bytes are not CDR, or not a value of this type.
    #[error("cannot convert the sample: {0}")]
    Cdr(String),
    /// The RTPS side of a gateway refuses something.
    #[error("RTPS: {0}")]
    Rtps(String),
    /// The domain's description or state is invalid.
    #[error("the domain is invalid: {0}")]
    Domain(String),
    /// The group part of the domain's description is invalid.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The participant did not become a member.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The operating system refused an operation.
    #[error("a system call failed: {0}")]
    System(#[from] std::io::Error),
}

impl From<SendError> for DdsError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::TimedOut(after) => Self::Timeout(after),
            SendError::TooLarge { length, limit } => Self::TooLarge {
                bytes: length,
                limit: usize::try_from(limit).unwrap_or(usize::MAX),
            },
            SendError::Stopped(stopped) => Self::Ended(stopped),
            other => Self::PreconditionNotMet(other.to_string()),
        }
    }
}
