//! Groups whose logs are on disks that lose power. Power is lost at all members at once, at every
//! write, and again during restarts (DUR-6).
//!
//! Each member consists of a log and the named values of [`values`]. All members receive the same
//! order of messages, and deliver, append and commit them at random times. The rules are the core's
//! ([`tramontane_core::restart`]).
//!
//! | file | contents |
//! |---|---|
//! | `values` | a member's state other than records, as named values of its log |
//! | `member` | a member: its disk, its log, and its answers |
//! | `group` | a group that delivers messages and changes its view |
//! | `restart` | restarting a group |
//! | `power` | the tests |

#[path = "../../../../../core-nostd/tests/view/restart/answers.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod answers;
mod group;
mod member;
mod power;
mod restart;
mod values;
