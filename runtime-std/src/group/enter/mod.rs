//! How a process becomes a member: it meets the other nodes, restarts the group, or joins it.
//!
//! | file | subject |
//! |---|---|
//! | `start` | the entry points |
//! | `start_options` | the options, and the errors |
//! | `start_fixed` | becoming a member with fixed membership |
//! | `entering` | entering a group whose membership changes |
//! | `meeting` | how initial nodes meet |
//! | `forming` | whether they may form the group |
//! | `find` | how a node finds its group |
//! | `lookout` | whom a forming node asks for running members |
//! | `place` | the resources of a process before it is a member |
//! | `senders` | the parts that senders share with the engine |
//! | `start_changing` | becoming a member with changing membership |

pub(crate) mod entering;
pub(crate) mod find;
pub(crate) mod forming;
pub(crate) mod lookout;
pub(crate) mod meeting;
pub(crate) mod place;
pub(crate) mod senders;
pub(crate) mod start;
pub(crate) mod start_changing;
pub(crate) mod start_fixed;
pub(crate) mod start_options;
