//! The status of a member, and the requests of an operator.
//!
//! | file | subject |
//! |---|---|
//! | `group_status` | the status |
//! | `metrics` | the status as metrics |
//! | `statistics` | its counters |
//! | `slow_members` | members that hold the others back |
//! | `operator` | an operator's requests |
//! | `operator_client` | an operator's client |

pub(crate) mod group_status;
mod metrics;
pub(crate) mod operator;
pub(crate) mod operator_client;
pub(crate) mod slow_members;
pub(crate) mod statistics;
