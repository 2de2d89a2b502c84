//! The state that a client's thread shares with the program's threads, which can wait for it to
//! change in blocking and async calls; and the thread's waits for a member and for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tramontane_control::client_messages::{ClientReply, SILENCE_MAX, decode};
use tramontane_control::{QueuedSession, SessionError, Wakeup};

/// The state that the client's thread changes.
#[derive(Debug)]
pub(crate) struct Shared<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
    /// Wakes the thread.
    wakeup: Wakeup,
    is_asleep: AtomicBool,
    /// Whether the thread should end.
    pub(crate) stop: AtomicBool,
}

#[derive(Debug)]
struct State<S> {
    inner: S,
    wakers: Vec<Waker>,
}

impl<S> Shared<S> {
    pub(crate) fn new(inner: S) -> std::io::Result<Self> {
        Ok(Self {
            state: Mutex::new(State { inner, wakers: Vec::new() }),
            changed: Condvar::new(),
            wakeup: Wakeup::new()?,
            is_asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // A panic leaves no partial change here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes the state without waking any waiter.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&mut S) -> T) -> T {
        call(&mut self.lock().inner)
    }

    /// Changes the state, and wakes all waiters.
    pub(crate) fn change<T>(&self, call: impl FnOnce(&mut S) -> T) -> T {
        let mut state = self.lock();
        let result = call(&mut state.inner);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// Waits, for at most `timeout`, until `look` returns a value.
    pub(crate) fn wait<T>(
        &self,
        timeout: Duration,
        mut look: impl FnMut(&mut S) -> Option<T>,
    ) -> Option<T> {
        let started = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state.inner) {
                return Some(found);
            }
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
    }

    /// Polls `look` for an async caller, which is woken when the state has changed.
    pub(crate) fn poll<T>(
        &self,
        context: &Context<'_>,
        look: impl FnOnce(&mut S) -> Option<T>,
    ) -> Poll<T> {
        let mut state = self.lock();
        if let Some(found) = look(&mut state.inner) {
            return Poll::Ready(found);
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Wakes the thread if it is asleep.
    pub(crate) fn wake_thread(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            self.wakeup.ring();
        }
    }

    /// Asks the thread to end.
    pub(crate) fn stop_thread(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wakeup.ring();
    }

    /// Returns whether the thread should end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Returns the wakeup that the thread waits for in addition to its session. From then on,
    /// changes wake the thread, but it must still check for earlier ones.
    pub(crate) fn fall_asleep(&self) -> Wakeup {
        self.wakeup.take();
        self.is_asleep.store(true, Ordering::SeqCst);
        self.wakeup.clone()
    }
    /// Waits for a member's reply to a request, after sending the request. Returns `None` if the
    /// thread should end.
    pub(crate) fn reply(
        &self,
        session: &mut QueuedSession,
        bytes_max: usize,
    ) -> Result<Option<Vec<u8>>, SessionError> {
        let until = Instant::now() + SILENCE_MAX;
        loop {
            let wakeup = self.fall_asleep();
            if self.is_stopped() {
                return Ok(None);
            }
            session.flush()?;
            session.read()?;
            if let Some(reply) = session.take(bytes_max)? {
                // The group must decide first.
                if decode(&reply) == Some(ClientReply::Alive) {
                    continue;
                }
                return Ok(Some(reply));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(SessionError::TimeUp);
            }
            wait(session, &wakeup, left);
        }
    }
}

/// Waits until the session can continue, or the thread is woken.
pub(crate) fn wait(session: &QueuedSession, wakeup: &Wakeup, timeout: Duration) {
    let timeout = Timespec::try_from(timeout).ok();
    let mut descriptors =
        [PollFd::new(session, session.interest(true)), PollFd::new(wakeup, PollFlags::IN)];
    // If the wait is interrupted, it is merely shorter.
    let _ = poll(&mut descriptors, timeout.as_ref());
}
