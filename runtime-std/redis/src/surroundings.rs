//! The parts of a thread that its connections' requests need.

use crate::facts::ServerFacts;
use crate::limits::ServerLimits;
use crate::outgoing::BatchCollector;

/// The parts of a thread that requests need.
pub(crate) struct Surroundings<'t> {
    pub(crate) outgoing: &'t mut BatchCollector,
    pub(crate) limits: &'t ServerLimits,
    pub(crate) facts: &'t ServerFacts,
    /// The number of requests that were handled.
    pub(crate) requests: u64,
}
