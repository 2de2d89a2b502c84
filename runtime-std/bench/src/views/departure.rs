//! The ways in which a member departs.

use clap::ValueEnum;
use serde::Serialize;

/// The way in which a member departs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// Killed: `kill -9`.
    Kill,
    /// Stopped, removed by the others, and woken again.
    Stop,
    /// Asked to leave.
    Leave,
}
