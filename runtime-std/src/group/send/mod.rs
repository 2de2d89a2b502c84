//! Sending: the handle that outlives views, and receipts for sent messages.
//!
//! | file | subject |
//! |---|---|
//! | `sender` | the handle |
//! | `send_state` | what it shares with the engine |
//! | `subgroup_sending` | the engine's side |
//! | `receipt` | what stands for a message that was sent |

pub(crate) mod receipt;
pub(crate) mod send_state;
pub(crate) mod sender;
pub(crate) mod subgroup_sending;
