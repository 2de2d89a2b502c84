//! Algorithms by name, and the steps of their schedules.

use tramontane_core::rdmc::{Algorithm, Schedule, Shape};

/// Returns an algorithm's name on the command line.
pub(super) const fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Sequential => "sequential",
        Algorithm::Interleaved => "interleaved",
        Algorithm::Chain => "chain",
        Algorithm::Tree => "tree",
        Algorithm::Pipeline => "pipeline",
        Algorithm::Hybrid { .. } => "hybrid",
    }
}

/// Returns the number of steps of a message's schedule, or `None` if there is no schedule.
pub(super) fn steps(algorithm: Algorithm, members: usize, bytes: usize, block_bytes: usize) -> u64 {
    let blocks = u32::try_from(bytes.div_ceil(block_bytes)).ok();
    let shape = u16::try_from(members)
        .ok()
        .zip(blocks)
        .and_then(|(members, blocks)| Shape::new(members, blocks));
    shape
        .and_then(|shape| Schedule::new(algorithm, shape).ok())
        .map_or(0, |schedule| schedule.steps())
}
