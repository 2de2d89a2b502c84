//! Threads that stay on a processor.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::BenchError;

/// The processors that this process may use, at most.
const PROCESSORS_MAX: usize = 1024;

/// What a thread does.
pub(super) type Work<'w, R> = Box<dyn FnOnce() -> Result<R, BenchError> + Send + 'w>;

/// Moves the calling thread to one of the processors that it may use: the first, the second and so
/// on, and from the first again behind the last.
pub(in super::super) fn pin(place: usize) -> Result<(), BenchError> {
    let refused = |error: rustix::io::Errno| {
        BenchError::Setup(format!("cannot stay on one processor: {error}"))
    };
    let may = sched_getaffinity(None).map_err(refused)?;
    let processors: Vec<usize> = (0..PROCESSORS_MAX).filter(|index| may.is_set(*index)).collect();
    let mut set = CpuSet::new();
    set.set(processors[place % processors.len().max(1)]);
    sched_setaffinity(None, &set).map_err(refused)
}

/// Runs a call on a thread of its own, which stays on that processor.
pub(in super::super) fn on<R: Send>(
    place: usize,
    call: impl FnOnce() -> Result<R, BenchError> + Send,
) -> Result<R, BenchError> {
    let [result] = together([place], [call])?;
    Ok(result)
}

/// Runs calls at the same time, each on a thread that stays on its processor.
pub(in super::super) fn together<R: Send, C, const N: usize>(
    places: [usize; N],
    calls: [C; N],
) -> Result<[R; N], BenchError>
where
    C: FnOnce() -> Result<R, BenchError> + Send,
{
    let mut threads = places.into_iter().zip(calls);
    std::thread::scope(|scope| {
        let handles = [(); N].map(|()| {
            threads.next().map(|(place, call)| {
                scope.spawn(move || {
                    pin(place)?;
                    call()
                })
            })
        });
        let results = handles.map(|handle| handle.and_then(|handle| handle.join().ok()));
        let mut ended = Vec::with_capacity(N);
        for result in results {
            let failed = || BenchError::Setup("a microbenchmark's thread panicked".into());
            ended.push(result.ok_or_else(failed)??);
        }
        <[R; N]>::try_from(ended).map_err(|_| BenchError::Setup("a thread is missing".into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_was_put_and_its_failure_is_passed_on() {
        let processor = on(0, || Ok(sched_getaffinity(None).map_or(0, |set| set.count())));
        assert_eq!(processor.expect("it runs"), 1);
        let failed: Result<(), _> = on(1, || Err(BenchError::Setup("no".into())));
        assert!(failed.is_err_and(|error| error.to_string() == "no"));
    }

    #[test]
    fn calls_that_wait_for_each_other_end() {
        let barrier = &std::sync::Barrier::new(2);
        let call = |value: u32| move || Ok((barrier.wait(), value).1);
        assert_eq!(together([0, 1], [call(3), call(4)]).expect("they run"), [3, 4]);
    }
}
