//! What the machine gives a run: a clock that goes as slowly as everything else does.
//!
//! A deadline says how long something may take on a machine that has time for it. So it is not
//! counted by the wall's clock but by this one: a thread sleeps and works a little, again and
//! again, and sees how long that takes; and it looks how many are waiting for a processor. A
//! deadline of three seconds passes after three seconds on a machine at rest, and after half a
//! minute on one with five times as much to do as it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The sleep of a round.
const SLEEP: Duration = Duration::from_micros(19_500);

/// The work of a round, in time of a processor.
const WORK_NS: u64 = 500_000;

/// How long a round takes on a machine at rest.
const ROUND_NS: u64 = 20_000_000;

/// A round that takes this many times as long is that of a machine at rest too: nothing is exact.
const AT_REST: f64 = 1.2;

/// Members need each other, and wait for each other's turns: they are slower by more than one
/// thread is.
const MARGIN: f64 = 2.0;

/// The clock. It stops when it is dropped.
#[derive(Debug)]
pub(super) struct LoadClock {
    granted_ns: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    began: Instant,
}

impl LoadClock {
    /// Starts it. Without a thread for it, it is the wall's.
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

    /// The time since its start.
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
            // It has nothing to panic with.
            let _ = thread.join();
        }
    }
}

/// What a round that took so long counts for, with so many in line for each processor.
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

/// The time that this thread has had a processor.
fn processor_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// How many threads run or wait for a processor now, for each processor; 0 where the system does
/// not say.
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
    fn time_counts_less_the_more_there_is_to_do() {
        assert_eq!(granted_of(ROUND_NS, 0.5), ROUND_NS);
        assert_eq!(granted_of(ROUND_NS, 4.0), ROUND_NS / 8);
        // Stopped for two seconds: that was nobody's time.
        assert_eq!(granted_of(100 * ROUND_NS, 0.0), ROUND_NS / 2);
    }

    #[test]
    fn it_goes_on_and_never_ahead_of_the_wall() {
        let began = Instant::now();
        let load_clock = LoadClock::start();
        while load_clock.now() < Duration::from_millis(50) {
            assert!(began.elapsed() < Duration::from_secs(60), "it stands still");
            std::thread::sleep(SLEEP);
        }
        assert!(load_clock.now() <= began.elapsed());
    }
}
