//! One run a seed, as many at a time as there are processors. The seed decides a run, so the order
//! in which they end changes nothing.

use crate::error::BenchError;

/// Runs each seed, and gives what came of them in the order of the seeds.
///
/// # Errors
/// That of the first seed that fails.
pub(super) fn run<T: Send>(
    seeds: &[u64],
    run: impl Fn(u64) -> Result<T, BenchError> + Sync,
) -> Result<Vec<T>, BenchError> {
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::with_capacity(seeds.len());
    for seeds in seeds.chunks(at_a_time) {
        let some: Vec<Result<T, BenchError>> = std::thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> =
                seeds.iter().map(|seed| scope.spawn(move || run(*seed))).collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|run| run.unwrap_or_else(|fault| std::panic::resume_unwind(fault))).collect()
        });
        for one in some {
            all.push(one?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_came_of_seeds_is_in_their_order_and_the_first_failure_counts() {
        let seeds: Vec<u64> = (0..9).collect();
        let slow_first = |seed: u64| {
            std::thread::sleep(Duration::from_millis(9 - seed));
            Ok(seed * 2)
        };
        assert_eq!(run(&seeds, slow_first).expect("all"), [0, 2, 4, 6, 8, 10, 12, 14, 16]);
        let failing = |seed: u64| match seed {
            5 | 7 => Err(BenchError::Setup(format!("seed {seed}"))),
            _ => Ok(()),
        };
        assert_eq!(run(&seeds, failing).expect_err("some fail").to_string(), "seed 5");
        assert_eq!(run(&[], slow_first).expect("none"), [0_u64; 0]);
    }
}
