//! Participants.
//!
//! | file | subject |
//! |---|---|
//! | `domain_participant` | the participant that applications have, which makes writers and readers |
//! | `shared` | what its entities share; where a thread may be in a listener |
//! | `replica` | the participant as an application of its group |
//! | `discovery` | what participants tell each other of their readers |
//! | `directory` | the topics that come and go at run time, as discovery's order has them |
//! | `topics` | the same with the view's part, and who waits for it |
//! | `topic_calls` | what a program asks of topics at run time |
//! | `timers` | the thread that notices what did not happen in time |
//! | `handles` | names of writers and readers |

mod directory;
#[cfg(test)]
mod directory_tests;
mod discovery;
mod domain_participant;
mod handles;
mod replica;
mod shared;
mod timers;
mod topic_calls;
mod topics;

pub use domain_participant::{DomainParticipant, Topic};
pub use handles::{PublicationData, PublicationHandle, SubscriptionData, SubscriptionHandle};
pub(crate) use shared::{Attachment, WriterAttachment, check_not_in_listener, is_in_listener};
