//! Why a call did not do what it was asked to: DDS's return codes, with reasons.

use std::time::Duration;

use tramontane::group::DescriptionError;
use tramontane::{SendError, StartError, Stopped};
use tramontane_client::{OpenError, PublishError};

use crate::qos::PolicyId;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DdsError {
    /// A policy that is not built: DDS's `RETCODE_UNSUPPORTED`.
    #[error("{policy:?} cannot have this value: {why}")]
    UnsupportedPolicy {
        /// The policy.
        policy: PolicyId,
        /// Why, and what to do instead.
        why: &'static str,
    },
    /// Policies that contradict each other or the topic: `RETCODE_INCONSISTENT_POLICY`.
    #[error("{policy:?} contradicts another setting: {why}")]
    InconsistentPolicy {
        /// The policy.
        policy: PolicyId,
        /// Why, and what to do.
        why: &'static str,
    },
    /// The call is not for this object: `RETCODE_PRECONDITION_NOT_MET`.
    #[error("{0}")]
    PreconditionNotMet(String),
    /// A call that may wait or takes a lock of the topic, from a listener:
    /// `RETCODE_ILLEGAL_OPERATION`.
    #[error("{0} cannot be called from a listener; call it from a thread of the application")]
    IllegalOperation(&'static str),
    /// No more may be kept: `RETCODE_OUT_OF_RESOURCES`.
    #[error("{0}")]
    OutOfResources(&'static str),
    /// No topic can be created: `RETCODE_OUT_OF_RESOURCES`.
    #[error("{0}")]
    NoPlace(String),
    /// The description of a topic does not fit a message of discovery.
    #[error(
        "what is said of the topic has {bytes} bytes, and {limit} is the most; shorten its names or \
         its topic_data"
    )]
    TooLong {
        /// Its size.
        bytes: usize,
        /// The most.
        limit: u32,
    },
    /// The topic was deleted: `RETCODE_ALREADY_DELETED`.
    #[error("the topic is deleted; create it again, and a writer or reader on it")]
    TopicDeleted,
    /// There was no room, or no answer, for so long: `RETCODE_TIMEOUT`.
    #[error("nothing came of it within {0:?}")]
    Timeout(Duration),
    /// The participant is no longer a member of its domain: `RETCODE_ALREADY_DELETED`.
    #[error("the participant has ended: {0}")]
    Ended(#[from] Stopped),
    /// No member of the domain takes this participant, or none does any more:
    /// `RETCODE_ALREADY_DELETED`.
    #[error("a participant outside: {0}")]
    Outside(#[from] OpenError),
    /// What was written did not get into the domain, or that is not known:
    /// `RETCODE_ALREADY_DELETED`.
    #[error("a writer outside: {0}")]
    NotPublished(#[from] PublishError),
    /// A sample is larger than the topic takes.
    #[error("the sample has {bytes} bytes, and the topic takes {limit}; raise its sample_max")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most.
        limit: usize,
    },
    /// A value that is no CDR, or none of this type.
    #[error("cannot convert the sample: {0}")]
    Cdr(String),
    /// The RTPS end of a gateway refuses something.
    #[error("RTPS: {0}")]
    Rtps(String),
    /// The description of the domain is wrong.
    #[error("the domain is wrong: {0}")]
    Domain(String),
    /// The group's part of it is.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The participant did not become a member.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The system refused something.
    #[error("the system refused it: {0}")]
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
