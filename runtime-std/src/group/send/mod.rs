//! Sending: the handle, which outlives views, and the receipts for sent messages.
//!
//! | file | subject |
//! |---|---|
//! | `sender` | the handle |
//! | `send_state` | the state that it shares with the engine |
//! | `subgroup_sending` | the engine's side |
//! | `pausing` | when an idle sender pauses |
//! | `slot_free` | waiting for a slot as a task |
//! | `receipt` | the handle for a sent message |

pub(crate) mod pausing;
pub(crate) mod receipt;
pub(crate) mod send_state;
pub(crate) mod sender;
pub(crate) mod slot_free;
pub(crate) mod subgroup_sending;
