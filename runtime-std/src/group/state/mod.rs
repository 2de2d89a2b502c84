//! A node's record of its membership, on disk.
//!
//! | file | subject |
//! |---|---|
//! | `membership_record` | the record |
//! | `noting` | the thread that notes where the logs end |
//! | `state_file` | the file, in two copies |
//! | `folder` | the folder |
//! | `last_membership` | what is in the record |
//! | `noted_log` | what is noted of a log |

pub(crate) mod folder;
pub(crate) mod last_membership;
pub(crate) mod membership_record;
pub(crate) mod noted_log;
pub(crate) mod noting;
pub(crate) mod state_file;
