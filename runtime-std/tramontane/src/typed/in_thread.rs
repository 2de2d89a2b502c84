//! A call that blocks, in a thread of its own, as a future for any executor.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// The result of a call that blocks, which runs in a thread of its own. A future, which works with
/// any executor. A panic of the call continues in the task that awaits it. Dropping it abandons the
/// result, but the call continues.
///
/// A task that must not block starts and leaves a group with it:
///
/// ```
/// use std::time::Duration;
///
/// use tramontane::prelude::*;
/// use tramontane::typed::InThread;
///
/// async fn send(group: Description) -> Result<(), Box<dyn std::error::Error>> {
///     let application = |_: &mut Messages<'_, '_>| {};
///     let start = move || start(group, StartOptions::new(0), application);
///     let running = InThread::call("start", start)?.await?;
///     let mut sender = running.sender().ok_or("every node sends")?;
///     sender.send_async(b"hello").await?;
///     InThread::call("leave", move || running.leave(Duration::from_secs(10)))?.await?;
///     Ok(())
/// }
/// ```
#[must_use = "the result says whether the call succeeded"]
pub struct InThread<T>(Arc<Mutex<CallState<T>>>);

struct CallState<T> {
    result: Option<Result<T, Box<dyn Any + Send>>>,
    waker: Option<Waker>,
}

impl<T: Send + 'static> InThread<T> {
    /// Runs `call` in a new thread with this name.
    ///
    /// # Errors
    /// Fails if the system has no further thread.
    pub fn call(name: &str, call: impl FnOnce() -> T + Send + 'static) -> std::io::Result<Self> {
        let state = Arc::new(Mutex::new(CallState { result: None, waker: None }));
        let given = Arc::clone(&state);
        let body = move || {
            let result = catch_unwind(AssertUnwindSafe(call));
            let mut state = given.lock().unwrap_or_else(PoisonError::into_inner);
            state.result = Some(result);
            let waker = state.waker.take();
            drop(state);
            waker.into_iter().for_each(Waker::wake);
        };
        std::thread::Builder::new().name(name.into()).spawn(body)?;
        Ok(Self(state))
    }
}

impl<T> Future for InThread<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.result.take() {
            Some(Ok(result)) => Poll::Ready(result),
            Some(Err(panic)) => {
                drop(state);
                resume_unwind(panic)
            }
            None => {
                let replaced = state.waker.replace(context.waker().clone());
                drop(state);
                drop(replaced);
                Poll::Pending
            }
        }
    }
}

impl<T> std::fmt::Debug for InThread<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("InThread").finish_non_exhaustive()
    }
}
