//! Participants.
//!
//! | file | subject |
//! |---|---|
//! | `domain_participant` | the participant that applications have, which makes writers and readers |
//! | `shared` | what its entities share; where a thread may be in a listener |
//! | `replica` | the participant as an application of its group |
//! | `discovery` | what participants tell each other of their readers |
//! | `timers` | the thread that notices what did not happen in time |
//! | `handles` | names of writers and readers |

mod discovery;
mod domain_participant;
mod handles;
mod replica;
mod shared;
mod timers;

pub use domain_participant::{DomainParticipant, Topic};
pub use handles::{PublicationData, PublicationHandle, SubscriptionData, SubscriptionHandle};
pub(crate) use shared::{Attachment, WriterAttachment, check_not_in_listener, is_in_listener};
