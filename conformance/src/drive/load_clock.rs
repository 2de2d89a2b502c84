//! A clock that measures the processor time that the machine grants a run, and slows down with the
//! load.
//!
//! A deadline says how long an operation may take on an idle machine. It is therefore measured by
//! this clock instead of the wall clock. A thread repeatedly sleeps and works a little, measures
//! how long this takes, and reads the number of threads that are waiting for a processor. A
//! deadline of three seconds passes after three seconds on an idle machine, and after half a minute
//! on a machine with five times more work than it can do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The sleep in each round.
const SLEEP: Duration = Duration::from_micros(19_500);

/// The work in each round, in processor time.
const WORK_NS: u64 = 500_000;

/// The duration of a round on an idle machine.
const ROUND_NS: u64 = 20_000_000;

/// A round up to this many times longer still counts as idle, because measurements vary.
const AT_REST: f64 = 1.2;

/// Members wait for each other, so load slows them down more than it slows a single thread.
const MARGIN: f64 = 2.0;

/// A clock that slows down with the machine's load, and stops when it is dropped.
#[derive(Debug)]
pub(super) struct LoadClock {
    granted_ns: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    began: Instant,
}

impl LoadClock {
    /// Starts the clock. If its thread cannot be started, the clock follows the wall clock.
    pub(super) fn start() -> Self {
        let (granted_ns, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (granted, over) = (Arc::clone(&granted_ns), Arc::clone(&is_over));
        let beat = move || {
            let mut last = Instant::now();
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(SLEEP);
                work();
                let now = Instant::now();
                let round_ns = nanoseconds(now - last);
                granted.fetch_add(granted_of(round_ns, waiting_per_processor()), Ordering::Relaxed);
                last = now;
            }
        };
        let thread = std::thread::Builder::new().name("pulse".into()).spawn(beat).ok();
        Self { granted_ns, is_over, thread, began: Instant::now() }
    }

    /// Returns the time since the start.
    pub(super) fn now(&self) -> Duration {
        match self.thread {
            Some(_) => Duration::from_nanos(self.granted_ns.load(Ordering::Relaxed)),
            None => self.began.elapsed(),
        }
    }
}

impl Drop for LoadClock {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic.
            let _ = thread.join();
        }
    }
}

/// Returns the time to count for a round of this duration, with `per_processor` threads in line for
/// each processor.
fn granted_of(round_ns: u64, per_processor: f64) -> u64 {
    let slowness = (round_ns as f64 / ROUND_NS as f64).max(per_processor);
    if slowness < AT_REST { round_ns } else { (round_ns as f64 / (slowness * MARGIN)) as u64 }
}

/// Keeps a processor busy for a moment.
fn work() {
    let until = processor_ns() + WORK_NS;
    while processor_ns() < until {
        std::hint::spin_loop();
    }
}

/// Returns the processor time of this thread.
fn processor_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// Returns the number of running or waiting threads per processor, or 0 if the system does not
/// report it.
fn waiting_per_processor() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running =
        text.split(' ').nth(3).and_then(|field| field.split_once('/')?.0.parse::<f64>().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    running.unwrap_or(0.0) / processors as f64
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_slows_down_under_load() {
        assert_eq!(granted_of(ROUND_NS, 0.5), ROUND_NS);
        assert_eq!(granted_of(ROUND_NS, 4.0), ROUND_NS / 8);
        // The process was stopped for two seconds, which do not count.
        assert_eq!(granted_of(100 * ROUND_NS, 0.0), ROUND_NS / 2);
    }

    #[test]
    fn clock_advances_but_never_overtakes_wall_time() {
        let began = Instant::now();
        let load_clock = LoadClock::start();
        while load_clock.now() < Duration::from_millis(50) {
            assert!(began.elapsed() < Duration::from_secs(60), "it stands still");
            std::thread::sleep(SLEEP);
        }
        assert!(load_clock.now() <= began.elapsed());
    }
}
