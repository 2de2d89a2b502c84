//! How a process becomes a member: it meets the other nodes, restarts the group, or joins it.
//!
//! | file | subject |
//! |---|---|
//! | `start` | the beginning |
//! | `start_options` | with what |
//! | `start_fixed` | the same where membership is fixed |
//! | `entering` | how it enters a group whose membership changes |
//! | `meeting` | how initial nodes meet |
//! | `forming` | whether they may form the group |
//! | `find` | how a node finds its group |
//! | `place` | what it has before it is a member |
//! | `senders` | what senders share with the engine |
//! | `start_changing` | the same where membership changes |

pub(crate) mod entering;
pub(crate) mod find;
pub(crate) mod forming;
pub(crate) mod meeting;
pub(crate) mod place;
pub(crate) mod senders;
pub(crate) mod start;
pub(crate) mod start_changing;
pub(crate) mod start_fixed;
pub(crate) mod start_options;
