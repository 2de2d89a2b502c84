//! The wait of a thread for a future that the progress of a member completes.
//!
//! A thread that waits steps the member itself, as a sender without a free slot does. So the result
//! need not be handed from one thread to another, and the processors do not contend for the
//! member's state. If several threads wait, one of them leads: it steps, and the others park.
//!
//! # Invariants
//! - A thread parks only after the future has its waker.
//! - A thread that stops leading wakes a parked follower, if there is one, which then leads.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::idle::Idle;
use super::waiting::{DriveOrRing, TRIES_PER_READING, WAIT_PATIENCE};

/// Steps a member on behalf of threads that wait for its progress.
#[derive(Clone, Default)]
pub struct MemberSteps {
    /// `None` if the member is stepped by its caller.
    driver: Option<Arc<dyn DriveOrRing>>,
}

impl MemberSteps {
    pub(crate) const fn new(driver: Option<Arc<dyn DriveOrRing>>) -> Self {
        Self { driver }
    }

    /// Waits for the future in this thread, for at most `timeout`. Upcalls may run in this thread.
    /// Returns `None` if the timeout passed.
    pub fn wait<F: Future + Unpin>(&self, mut future: F, timeout: Duration) -> Option<F::Output> {
        let Some(driver) = self.driver.as_deref() else { return park(&mut future, timeout) };
        if let Poll::Ready(output) = poll(&mut future, Waker::noop()) {
            return Some(output);
        }
        let (started, waker) = (Instant::now(), unpark_caller());
        let mut part = driver.leading().enter();
        loop {
            if part.is_leading() {
                if let Some(output) = step_until_ready(driver, &mut future, started, timeout) {
                    return Some(output);
                }
                part.give_up();
            }
            if let Poll::Ready(output) = poll(&mut future, &waker) {
                return Some(output);
            }
            if !park_until(started, timeout) {
                return None;
            }
            part.look();
        }
    }
}

impl std::fmt::Debug for MemberSteps {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("MemberSteps").finish_non_exhaustive()
    }
}

/// Waits for the future in this thread, which parks in the meantime, for at most `timeout`. Returns
/// `None` if the timeout passed.
pub(crate) fn park<F: Future + Unpin>(future: &mut F, timeout: Duration) -> Option<F::Output> {
    let (started, waker) = (Instant::now(), unpark_caller());
    loop {
        if let Poll::Ready(output) = poll(future, &waker) {
            return Some(output);
        }
        if !park_until(started, timeout) {
            return None;
        }
    }
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Parks once. Returns false if the timeout has passed.
fn park_until(started: Instant, timeout: Duration) -> bool {
    match timeout.checked_sub(started.elapsed()) {
        Some(left) if !left.is_zero() => {
            std::thread::park_timeout(left);
            true
        }
        _ => false,
    }
}

/// Steps until the future is ready. Returns `None` if there was no progress for a while, or the
/// timeout has passed.
fn step_until_ready<F: Future + Unpin>(
    driver: &dyn DriveOrRing,
    future: &mut F,
    started: Instant,
    timeout: Duration,
) -> Option<F::Output> {
    let mut idle = Idle::new(WAIT_PATIENCE);
    let mut tries = 0_u32;
    loop {
        tries = tries.wrapping_add(1);
        let drove = driver.drive();
        if let Poll::Ready(output) = poll(future, Waker::noop()) {
            return Some(output);
        }
        if drove {
            idle.reset();
        } else if idle.pause() {
            return None;
        }
        if tries.is_multiple_of(TRIES_PER_READING) && started.elapsed() >= timeout {
            return None;
        }
    }
}

/// The threads that wait: one that leads, and those that follow.
#[derive(Debug, Default)]
pub(crate) struct Leading(Mutex<LeadingState>);

#[derive(Debug, Default)]
struct LeadingState {
    is_led: bool,
    followers: Vec<Thread>,
}

/// The calling thread among those that wait.
struct WaitingThread<'l> {
    leading: &'l Leading,
    role: WaitingRole,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitingRole {
    Leads,
    /// Among the followers until it has been chosen.
    Follows,
    /// Parks only, because it has led without progress. The member steps by itself.
    Parks,
}

impl Leading {
    fn lock(&self) -> MutexGuard<'_, LeadingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leads if no other thread does, and otherwise follows.
    fn enter(&self) -> WaitingThread<'_> {
        WaitingThread { leading: self, role: self.lock().enter() }
    }
}

impl LeadingState {
    fn enter(&mut self) -> WaitingRole {
        if self.is_led {
            self.followers.push(std::thread::current());
            return WaitingRole::Follows;
        }
        self.is_led = true;
        WaitingRole::Leads
    }

    fn position(&self) -> Option<usize> {
        let own = std::thread::current().id();
        self.followers.iter().position(|thread| thread.id() == own)
    }
}

impl WaitingThread<'_> {
    fn is_leading(&self) -> bool {
        self.role == WaitingRole::Leads
    }

    /// Stops leading without a successor.
    fn give_up(&mut self) {
        self.leading.lock().is_led = false;
        self.role = WaitingRole::Parks;
    }

    /// Leads if this thread has been chosen.
    fn look(&mut self) {
        if self.role == WaitingRole::Follows {
            let mut state = self.leading.lock();
            if state.position().is_none() {
                self.role = state.enter();
            }
        }
    }
}

impl Drop for WaitingThread<'_> {
    fn drop(&mut self) {
        let mut state = self.leading.lock();
        match (self.role, state.position()) {
            (WaitingRole::Parks, _) => return,
            (WaitingRole::Follows, Some(own)) => {
                state.followers.swap_remove(own);
                return;
            }
            (WaitingRole::Leads, _) => state.is_led = false,
            // Chosen, but ready before it could lead.
            (WaitingRole::Follows, None) => {}
        }
        if state.is_led {
            return;
        }
        let next = state.followers.pop();
        drop(state);
        next.iter().for_each(Thread::unpark);
    }
}

fn unpark_caller() -> Waker {
    Waker::from(Arc::new(UnparkCaller(std::thread::current())))
}

/// Wakes a parked thread.
struct UnparkCaller(Thread);

impl Wake for UnparkCaller {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A driver whose steps are counted, and each of which completes one future.
    #[derive(Default)]
    struct CountedDriver {
        leading: Leading,
        steps: AtomicU64,
        is_stepped: Mutex<()>,
    }

    impl DriveOrRing for CountedDriver {
        fn drive(&self) -> bool {
            let Ok(_alone) = self.is_stepped.try_lock() else { return false };
            self.steps.fetch_add(1, Ordering::SeqCst) < 50_000
        }

        fn ring(&self) {}

        fn leading(&self) -> &Leading {
            &self.leading
        }
    }

    /// Nothing but the threads that wait steps, and nothing wakes a follower but the leader.
    #[test]
    fn one_waiting_thread_steps_for_all() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let driver = Arc::new(CountedDriver::default());
        let stepping = MemberSteps::new(Some(Arc::<CountedDriver>::clone(&driver)));
        std::thread::scope(|scope| {
            for goal in (100..=40_000).step_by(5_700) {
                let (stepping, driver) = (&stepping, &driver);
                scope.spawn(move || {
                    let is_there = std::future::poll_fn(|_| {
                        match driver.steps.load(Ordering::SeqCst) >= goal {
                            true => Poll::Ready(()),
                            false => Poll::Pending,
                        }
                    });
                    assert_eq!(stepping.wait(is_there, PATIENCE), Some(()), "{goal}");
                });
            }
        });
        assert!(driver.leading.lock().followers.is_empty());
        assert!(!driver.leading.lock().is_led);
    }

    #[test]
    fn wait_without_progress_ends_with_timeout() {
        let driver = Arc::new(CountedDriver::default());
        driver.steps.store(50_000, Ordering::SeqCst);
        let stepping = MemberSteps::new(Some(driver));
        let never = std::future::pending::<()>();
        assert_eq!(stepping.wait(never, Duration::from_millis(5)), None);
        let never = std::future::pending::<()>();
        assert_eq!(MemberSteps::default().wait(never, Duration::from_millis(5)), None);
    }
}
