//! Topics as a member sees them.
//!
//! | file | subject |
//! |---|---|
//! | `state` | what the topic's messages have told so far, and the readers here |
//! | `writers` | the writers, and whether they live |
//! | `store` | what is kept for readers that come later |
//! | `snapshot` | all of that, for a participant that joins |
//! | `takeover` | the same for a participant outside, which may have been there before |
//! | `history` | the topic as a log tells it from a place on |
//! | `tail` | its last messages, for readers that come from the log |
//! | `payload` | values that are kept, and their memory |

mod history;
mod payload;
mod snapshot;
mod state;
mod store;
mod tail;
mod takeover;
#[cfg(test)]
mod test_topics;
mod writers;

#[cfg(all(test, tramontane_interleave))]
pub(crate) use payload::Payloads;
pub(crate) use payload::{Incoming, Payload};
pub(crate) use state::TopicState;
pub(crate) use store::{Keep, TopicStore};
