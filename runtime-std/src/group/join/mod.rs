//! The joiner: how it is let into a group that runs, and takes over its state.
//!
//! | file | subject |
//! |---|---|
//! | `joining` | its attempts |
//! | `join_messages` | what it and members tell each other |
//! | `admission` | which view admits it |
//! | `state_transfer` | what it restores |
//! | `transfer_progress` | whether that is all |
//! | `restoring` | where what is restored goes |
//! | `log_transfer` | what its logs lack |
//! | `attempt_error` | why one failed |

pub(crate) mod admission;
pub(crate) mod attempt_error;
pub(crate) mod join_messages;
pub(crate) mod joining;
pub(crate) mod log_transfer;
pub(crate) mod restoring;
pub(crate) mod state_transfer;
pub(crate) mod transfer_progress;
