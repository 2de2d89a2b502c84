//! A joining node's admission to a running group, and the transfer of the group's state to it.
//!
//! | file | subject |
//! |---|---|
//! | `joining` | its attempts |
//! | `join_messages` | the messages between the joiner and members |
//! | `admission` | the view that admits it |
//! | `state_transfer` | the state that it restores |
//! | `transfer_progress` | whether the state is complete |
//! | `restoring` | the destinations of the restored state |
//! | `log_transfer` | the records that its logs lack |
//! | `attempt_error` | why an attempt failed |

pub(crate) mod admission;
pub(crate) mod attempt_error;
pub(crate) mod join_messages;
pub(crate) mod joining;
pub(crate) mod log_transfer;
pub(crate) mod restoring;
pub(crate) mod state_transfer;
pub(crate) mod transfer_progress;
