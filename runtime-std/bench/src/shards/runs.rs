//! Runs by case and seed, as many at a time as there are processors. The seed decides a run, so the
//! order in which they end changes nothing.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::BenchError;
use crate::spread::Spread;

/// Runs each case with each seed, and gives what came of them in the order of the seeds. `after` is
/// called after each run.
///
/// # Errors
/// That of a run that failed.
pub(super) fn run<C: Copy + Ord + Send + Sync, T: Send>(
    cases: &[C],
    seeds: &[u64],
    run: impl Fn(&C, u64) -> Result<T, BenchError> + Sync,
    after: &(dyn Fn() + Sync),
) -> Result<BTreeMap<C, Vec<T>>, BenchError> {
    let all: Vec<(&C, u64)> =
        cases.iter().flat_map(|case| seeds.iter().map(move |seed| (case, *seed))).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        while let Some((case, seed)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run(case, *seed)?;
            done.lock().unwrap_or_else(PoisonError::into_inner).insert((**case, *seed), outcome);
            after();
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let broken = |_| Err(BenchError::Setup("a simulated run broke off".into()));
        let ends = threads.into_iter().map(|thread| thread.join().unwrap_or_else(broken));
        ends.collect::<Vec<_>>().into_iter().collect::<Result<(), BenchError>>()
    })?;
    let mut by_case: BTreeMap<C, Vec<T>> = BTreeMap::new();
    for ((case, _), outcome) in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        by_case.entry(case).or_default().push(outcome);
    }
    Ok(by_case)
}

/// One figure of all runs.
pub(super) fn spread<T>(runs: &[T], figure: impl Fn(&T) -> f64) -> Spread {
    Spread::of(&runs.iter().map(figure).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_a_case_is_in_the_order_of_the_seeds() {
        let counted = AtomicUsize::new(0);
        let after = || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let found = run(&[3, 1], &[7, 8, 9], |case, seed| Ok(case * 10 + seed), &after);
        let found = found.expect("all");
        assert_eq!(found[&3], [37, 38, 39]);
        assert_eq!(found[&1], [17, 18, 19]);
        assert_eq!(counted.into_inner(), 6);
        let failed = run(
            &[1, 2],
            &[1],
            |case, _| match case {
                2 => Err(BenchError::Setup("case 2".into())),
                _ => Ok(0),
            },
            &|| (),
        );
        assert_eq!(failed.expect_err("one fails").to_string(), "case 2");
    }
}
