//! System limits that would end the program by a signal or a panic. Here, the program ends with
//! status 4 and one line instead.
//!
//! - A file that reaches its largest size (`ulimit -f`) raises SIGXFSZ, which ends a process. If
//!   the signal is caught, the write fails with an error that names the file.
//! - The standard library panics if a scoped thread cannot be started (`ulimit -u`, `pids.max`, and
//!   `ulimit -v`, which leaves no room for its stack).
//! - It aborts if the system provides no memory (`ulimit -v`): see `out_of_memory`.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::exit::{Failure, Status};
use crate::out_of_memory;

/// The beginning of the standard library's panic message.
const NO_THREAD: &str = "failed to spawn thread";

/// Makes these limits end the program with a one-line message.
///
/// # Errors
/// Fails if the system refuses to watch for the signals.
pub fn watch() -> io::Result<()> {
    out_of_memory::watch()?;
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        match text_of(panic.payload()).and_then(no_thread) {
            Some(failure) => {
                failure.report();
                // A thread that waits for the missing thread would wait forever.
                std::process::exit(failure.status.code().into());
            }
            None => usual(panic),
        }
    }));
    Ok(())
}

/// Returns the message of a panic.
fn text_of(payload: &dyn Any) -> Option<&str> {
    let formatted = payload.downcast_ref::<String>().map(String::as_str);
    formatted.or_else(|| payload.downcast_ref::<&str>().copied())
}

fn no_thread(panic: &str) -> Option<Failure> {
    let text = Some(panic).filter(|text| text.starts_with(NO_THREAD))?;
    let advice = "end other processes, or raise the limit of threads or of memory (ulimit -u, -v; \
                  pids.max of the cgroup)";
    Some(Failure::new(Status::Resources, format_args!("cannot start a thread: {text}"), advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_to_start_thread_reports_lacking_resources() {
        let panic = std::panic::catch_unwind(|| {
            std::thread::scope(|scope| {
                // No address space has room for this stack.
                let thread = std::thread::Builder::new().stack_size(1 << 60);
                thread.spawn_scoped(scope, || ()).expect(NO_THREAD);
            });
        });
        let payload = panic.expect_err("no thread");
        let text = text_of(&*payload).expect("a text");
        let failure = no_thread(text).expect("it is about a thread");
        assert_eq!(failure.status, Status::Resources);
        assert!(no_thread("index out of bounds").is_none());
    }
}
