//! Work in a thread that a signal abandons, because it waits for members, or for input.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use crate::exit::Failure;
use crate::interrupt::Interrupts;

/// The interval between two checks for a signal.
pub const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Returns the result of `work`, or the signal that arrives first. In that case, the work ends with
/// the process.
///
/// # Errors
/// The signal, the error of `work`, or that the system has no thread.
pub fn until_interrupted<R: Send + 'static>(
    interrupts: &Interrupts,
    thread: &str,
    work: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> Result<R, Failure> {
    let (done, outcome) = channel();
    let run = move || {
        // The command may have ended already.
        let _ = done.send(work());
    };
    let started = Builder::new().name(thread.to_owned()).spawn(run);
    started.map_err(|error| Failure::system("cannot start a thread", &error))?;
    loop {
        interrupts.check()?;
        match outcome.recv_timeout(LOOK_PAUSE) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::other(
                    "a thread of this command failed",
                    "please report this",
                ));
            }
        }
    }
}
