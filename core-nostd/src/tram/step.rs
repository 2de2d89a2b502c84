//! The context that a step passes to its functions, in every role.
//!
//! Requirement: TRM-3.

use super::log::Log;
use crate::ids::Time;

/// The time of one step, and the fabric and memory that are lent for it.
pub(super) struct StepContext<'w, F, M> {
    pub(super) now: Time,
    pub(super) fabric: &'w mut F,
    pub(super) memory: &'w M,
    /// Local log, which is a region of the lent memory.
    pub(super) log: Log<'w>,
}
