//! The single polling loop for groups and for block groups, with its clock, its guard against
//! panics, its sleep, and its turn.
//!
//! | file | subject |
//! |---|---|
//! | `steps` | how every step begins and ends, and how it sleeps |
//! | `poller` | the thread that steps |
//! | `stepping` | a thread that waits for a future |
//! | `waiting` | a sender that waits for a slot |
//! | `clock`, `idle`, `ending` | the time; the pause between steps; the reason for the end |

mod clock;
mod ending;
mod idle;
mod poller;
mod stepping;
mod steps;
mod waiting;

pub(crate) use self::clock::{Clock, nanoseconds};
pub(crate) use self::ending::{Ending, guarded};
pub use self::idle::Idle;
pub(crate) use self::poller::Poller;
pub use self::stepping::MemberSteps;
pub(crate) use self::stepping::park;
pub(crate) use self::steps::{Done, Slept, Steps, sleep, step};
pub(crate) use self::waiting::{DriveOrRing, wait_driving};
