//! What every member of a group is made of: the memory that its node borrows, and why it ended.

mod lent;
mod stop;
mod unsendable;

pub use self::lent::{Memory, Settings};
pub(crate) use self::lent::{OutboxCell, PrivateState, Shared};
pub use self::stop::Stopped;
pub use self::unsendable::SendError;

pub use crate::poll::Idle;
