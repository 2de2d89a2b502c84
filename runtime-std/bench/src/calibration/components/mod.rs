//! Microbenchmarks of this machine's components: what one processor, one cache line, one copy or
//! one system call costs.
//!
//! None of them is a run of a group that somebody wants to predict: members of a group appear in
//! `steps` alone, where one thread steps all of them in turn, so that nothing waits for anything.
//!
//! | file | what it measures |
//! |---|---|
//! | `pinned` | threads that stay on a processor |
//! | `lines` | what another processor wrote: one line, and messages of some sizes |
//! | `steps` | a member's step: at rest, and each stage's share of a message |
//! | `kernel` | changing threads, waking one |
//! | `copies` | copies by size, and the memory's bandwidth |
//! | `streams` | a connection's bytes, in large pieces |

pub(super) mod copies;
pub(super) mod kernel;
pub(super) mod lines;
pub(super) mod pinned;
pub(super) mod steps;
pub(super) mod streams;

use std::time::Instant;

/// Repetitions of a microbenchmark in one round; their median counts.
const REPETITIONS: usize = 15;

/// How long a call takes, in ns.
pub(super) fn time_ns<R>(call: impl FnOnce() -> R) -> (f64, R) {
    let begun = Instant::now();
    let result = call();
    (begun.elapsed().as_nanos() as f64, result)
}
