//! Participants.
//!
//! | file | subject |
//! |---|---|
//! | `domain_participant` | the participant of applications, which creates writers and readers |
//! | `outside` | the external participant, a program that is not a member of the group |
//! | `following` | the threads that give it the input of members |
//! | `history` | readers that begin at a position of the log |
//! | `facts` | facts of the domain that it receives |
//! | `calls` | the calls that both kinds of participants have |
//! | `entities`, `host` | creation of writers and readers; the differences between members and external participants |
//! | `life` | lifetime of a participant and of its threads |
//! | `voice` | how messages of members and external participants get into a topic |
//! | `shared` | state that its entities share |
//! | `upcall` | marks of threads that may be inside a listener |
//! | `application` | the participant as an application of its group |
//! | `discovery` | readers that participants announce to each other |
//! | `words` | handling of discovery messages |
//! | `directory` | topics created and deleted at run time, according to discovery's order |
//! | `topics` | the same with the places open in the view, and waiting for them |
//! | `topic_calls` | a program's requests about topics at run time |
//! | `typed_topic` | a topic with the type of its samples |
//! | `timers` | the thread that notices what did not happen in time |
//! | `handles` | names of writers and readers |

mod application;
mod calls;
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
mod shared;
mod timers;
mod topic_calls;
mod topics;
mod typed_topic;
mod upcall;
mod voice;
mod words;

pub(crate) use discovery::OUTSIDE_MAX;
pub use domain_participant::DomainParticipant;
pub use handles::{
    ParticipantId, PublicationData, PublicationHandle, SubscriptionData, SubscriptionHandle,
};
pub use outside::OutsideParticipant;
pub(crate) use shared::{Attachment, WriterAttachment};
pub use typed_topic::Topic;
pub(crate) use upcall::{check_not_in_listener, is_in_listener};
pub(crate) use voice::{Committed, MessageMemory, Voice};
