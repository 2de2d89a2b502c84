//! Topics, as a member knows them.
//!
//! | file | subject |
//! |---|---|
//! | `state` | the topic's state according to its messages, and the readers here |
//! | `writers` | the writers, and whether they are alive |
//! | `store` | samples kept for late readers |
//! | `snapshot` | all of that, for a joining participant |
//! | `takeover` | the same for an external participant, which may have been there before |
//! | `history` | the topic as its log shows it from a position on |
//! | `tail` | its last messages, for readers that catch up from the log |
//! | `payload` | kept values, and their memory |

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
pub(crate) use payload::{IncomingValue, Payload};
pub(crate) use state::TopicState;
pub(crate) use store::{Keep, TopicStore};
