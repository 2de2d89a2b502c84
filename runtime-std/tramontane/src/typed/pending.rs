//! One answer, between the thread that gives it and the thread or task that waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tramontane_runtime::group::Ordinal;

use super::not_answered::NotAnswered;

/// The ordinal of a message that has not been sent.
const UNSENT: u64 = u64::MAX;

/// An answer that is given once, and taken once.
pub(super) struct Pending<A> {
    /// The ordinal of the message, once it has been sent.
    ordinal: AtomicU64,
    state: Mutex<PendingState<A>>,
}

struct PendingState<A> {
    answer: Option<Result<A, NotAnswered>>,
    is_answered: bool,
    waker: Option<Waker>,
}

impl<A> Pending<A> {
    pub(super) fn new() -> Arc<Self> {
        let state = PendingState { answer: None, is_answered: false, waker: None };
        Arc::new(Self { ordinal: AtomicU64::new(UNSENT), state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, PendingState<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the answer, unless there is one already. Returns the waker of the waiting thread or
    /// task, which the caller wakes once it holds no lock.
    #[must_use]
    pub(super) fn answer(&self, answer: Result<A, NotAnswered>) -> Option<Waker> {
        let mut state = self.lock();
        if state.is_answered {
            return None;
        }
        state.is_answered = true;
        state.answer = Some(answer);
        state.waker.take()
    }

    /// Returns the answer, or registers the waker. The answer is returned once.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Result<A, NotAnswered>> {
        let mut state = self.lock();
        match state.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Notes that the message has been sent.
    pub(super) fn sent(&self, ordinal: Ordinal) {
        self.ordinal.store(ordinal.0, Ordering::Release);
    }

    /// Wakes the waiting caller, for the ordinal of a message that may have been answered before it
    /// was known to be sent.
    pub(super) fn wake(&self) {
        let waker = self.lock().waker.take();
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn ordinal(&self) -> Option<Ordinal> {
        let ordinal = self.ordinal.load(Ordering::Acquire);
        (ordinal != UNSENT).then_some(Ordinal(ordinal))
    }

    /// Returns the ordinal, or registers the waker.
    pub(super) fn poll_ordinal(&self, context: &mut Context<'_>) -> Poll<Ordinal> {
        // Registered first, so that an ordinal that is noted in the meantime wakes.
        self.lock().waker = Some(context.waker().clone());
        self.ordinal().map_or(Poll::Pending, Poll::Ready)
    }
}

/// Waits for a future in this thread, for at most `timeout`.
pub(super) fn wait<F: Future + Unpin>(mut future: F, timeout: Duration) -> Option<F::Output> {
    let started = Instant::now();
    let waker = Waker::from(Arc::new(UnparkCaller(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = std::pin::Pin::new(&mut future).poll(&mut context) {
            return Some(output);
        }
        match timeout.checked_sub(started.elapsed()) {
            Some(left) if !left.is_zero() => std::thread::park_timeout(left),
            _ => return None,
        }
    }
}

/// Wakes a parked thread.
struct UnparkCaller(Thread);

impl Wake for UnparkCaller {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
