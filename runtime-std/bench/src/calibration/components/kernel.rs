//! Changing threads, and waking one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{park, yield_now};

use super::{pinned, time_ns};
use crate::error::BenchError;

/// Calls of one microbenchmark.
const CALLS: u64 = 20_000;

/// From one thread to another of the same processor, both of which give way to each other all the
/// time, in ns: the call included.
pub(in super::super) fn switch_ns() -> Result<f64, BenchError> {
    // Both count turns: a call that came back to the same thread is none.
    let (turn, turns) = (&AtomicU64::new(2), &AtomicU64::new(0));
    let both = &std::sync::Barrier::new(2);
    let call = |own: u64| {
        move || {
            both.wait();
            let (took_ns, ()) = time_ns(|| {
                while turns.load(Ordering::Relaxed) < CALLS {
                    if turn.swap(own, Ordering::Relaxed) != own {
                        turns.fetch_add(1, Ordering::Relaxed);
                    }
                    yield_now();
                }
            });
            Ok(took_ns)
        }
    };
    let [first, second] = pinned::together([0, 0], [call(0), call(1)])?;
    Ok(f64::max(first, second) / turns.load(Ordering::Relaxed).max(1) as f64)
}

/// From a wake-up to the first instruction of the sleeper, on another processor, in ns: half of a
/// round trip.
pub(in super::super) fn wake_ns() -> Result<f64, BenchError> {
    const ROUNDS: u64 = 2_000;
    let (ready, over) = (&AtomicU64::new(0), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (to_main, from_echo) = std::sync::mpsc::channel();
        let main = scope.spawn(move || {
            pinned::pin(0)?;
            let echo: std::thread::Thread =
                from_echo.recv().map_err(|_| BenchError::Setup("no other thread".into()))?;
            let (took_ns, ()) = time_ns(|| {
                for round in 0..ROUNDS {
                    ready.store(2 * round + 1, Ordering::Release);
                    echo.unpark();
                    while ready.load(Ordering::Acquire) < 2 * round + 2 {
                        park();
                    }
                }
            });
            over.store(true, Ordering::Release);
            echo.unpark();
            Ok(took_ns / (2 * ROUNDS) as f64)
        });
        let waiting = main.thread().clone();
        scope.spawn(move || {
            // It goes on where it is if it cannot move; the other one reports that.
            let _ = pinned::pin(1);
            let _ = to_main.send(std::thread::current());
            while !over.load(Ordering::Acquire) {
                let now = ready.load(Ordering::Acquire);
                if now % 2 == 1 {
                    ready.store(now + 1, Ordering::Release);
                    waiting.unpark();
                } else {
                    park();
                }
            }
        });
        main.join().map_err(|_| BenchError::Setup("a microbenchmark's thread panicked".into()))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_change_and_wake() {
        assert!(switch_ns().expect("it runs") > 10.0);
        assert!(wake_ns().expect("it runs") > 100.0);
    }
}
