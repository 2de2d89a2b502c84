//! The application's side: the messages and views that members receive, in one order.
//!
//! | file | subject |
//! |---|---|
//! | `application` | the application's interface |
//! | `delivery_queue` | delivery into a queue |
//! | `message` | one message, and a view that begins |
//! | `messages` | the messages of a batch |

pub(crate) mod application;
pub(crate) mod delivery_queue;
pub(crate) mod message;
pub(crate) mod messages;
