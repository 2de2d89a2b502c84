//! The code common to all members of a group: the memory that a node borrows, and the reasons why a
//! member ends.

mod lent;
mod stop;
mod unsendable;

pub use self::lent::{Memory, Settings};
pub(crate) use self::lent::{OutboxCell, PrivateState, Shared};
pub use self::stop::{Stopped, give_up};
pub use self::unsendable::SendError;

pub use crate::poll::Idle;
