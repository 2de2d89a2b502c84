//! A node's record of its membership, on disk.
//!
//! | file | subject |
//! |---|---|
//! | `membership_record` | the record |
//! | `noting` | the thread that notes the ends of the logs |
//! | `state_file` | the file, in two copies |
//! | `folder` | the folder |
//! | `last_membership` | the content of the record |
//! | `noted_log` | the notes about a log |

pub(crate) mod folder;
pub(crate) mod last_membership;
pub(crate) mod membership_record;
pub(crate) mod noted_log;
pub(crate) mod noting;
pub(crate) mod state_file;
