//! Participants.
//!
//! | file | subject |
//! |---|---|
//! | `domain_participant` | the participant that applications have, which makes writers and readers |
//! | `outside` | the participant of a program that is no member of the group |
//! | `following` | the threads that tell it what members are told |
//! | `history` | readers that begin at a place of the log |
//! | `facts` | what it is told of the domain |
//! | `entities`, `host` | how writers and readers are made; what a member and one outside do differently for that |
//! | `life` | how long a participant is there, and its threads |
//! | `voice` | how a participant gets what it says into a topic: a member, or one outside |
//! | `shared` | what its entities share |
//! | `upcall` | where a thread may be in a listener |
//! | `replica` | the participant as an application of its group |
//! | `discovery` | what participants tell each other of their readers |
//! | `words` | what is said in discovery, as each participant takes it |
//! | `directory` | the topics that come and go at run time, as discovery's order has them |
//! | `topics` | the same with the view's part, and who waits for it |
//! | `topic_calls` | what a program asks of topics at run time |
//! | `timers` | the thread that notices what did not happen in time |
//! | `handles` | names of writers and readers |

mod directory;
mod discovery;
mod domain_participant;
mod entities;
mod facts;
mod following;
mod handles;
mod history;
mod host;
mod life;
mod outside;
mod replica;
mod shared;
mod timers;
mod topic_calls;
mod topics;
mod upcall;
mod voice;
mod words;

pub(crate) use discovery::OUTSIDE_MAX;
pub use domain_participant::{DomainParticipant, Topic};
pub use handles::{
    ParticipantId, PublicationData, PublicationHandle, SubscriptionData, SubscriptionHandle,
};
pub use outside::OutsideParticipant;
pub(crate) use shared::{Attachment, WriterAttachment};
pub(crate) use upcall::{check_not_in_listener, is_in_listener};
pub(crate) use voice::{Committed, Place, Voice};
