//! The one polling loop, of groups and of block groups: clock, guard against panics, sleep, turn.
//!
//! | file | subject |
//! |---|---|
//! | `steps` | what every step begins and ends with, whoever calls it; how it sleeps |
//! | `poller` | the thread that steps |
//! | `waiting` | a sender that waits for a slot |
//! | `clock`, `idle`, `ending` | the time; how to wait between steps; why it ended |

mod clock;
mod ending;
mod idle;
mod poller;
mod steps;
mod waiting;

use std::time::Duration;

pub(crate) use clock::{Clock, nanoseconds};
pub(crate) use ending::{Ending, guarded};
pub use idle::Idle;
pub(crate) use poller::Poller;
pub(crate) use steps::{Done, Slept, Steps, sleep, step};
pub(crate) use waiting::{Drive, wait_driving};

/// How long the polling thread keeps off while senders step.
const KEEP_OFF: Duration = Duration::from_micros(200);
