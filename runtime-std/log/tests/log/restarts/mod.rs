//! Groups whose logs are on disks that lose power: all members at once, at every write, and again
//! while they restart (DUR-6).
//!
//! The members are nothing but a log and the named values of [`values`]: what they deliver is one
//! order that all receive, and each appends and commits it when chance says so. The rules are the
//! core's ([`tramontane_core::restart`]).
//!
//! | file | what it holds |
//! |---|---|
//! | `values` | what a member remembers beside its records, as named values of its log |
//! | `member` | a member: its disk, its log, and what it answers |
//! | `group` | a group that delivers and changes its view |
//! | `restart` | how it restarts |
//! | `power` | the tests |

#[path = "../../../../../core-nostd/tests/view/restart/answers.rs"]
#[allow(dead_code, reason = "the core's tests use the rest")]
mod answers;
mod group;
mod member;
mod power;
mod restart;
mod values;
