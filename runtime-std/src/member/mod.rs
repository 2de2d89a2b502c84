//! What every member of a group is made of: the memory that its node borrows, and why it ended.

mod lent;
mod stop;
mod unsendable;

pub use lent::{Memory, Settings};
pub(crate) use lent::{OutboxCell, PrivateState, Shared};
pub use stop::Stopped;
pub use unsendable::SendError;

pub use crate::poll::Idle;
