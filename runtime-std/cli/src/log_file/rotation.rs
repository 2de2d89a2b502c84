//! SIGHUP reopens log files, as programs that rotate logs expect. If the process has lost its
//! terminal, the signal means that, and the process is asked to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, open};
use signal_hook::consts::{SIGHUP, SIGTERM};

use super::SharedLogFile;
use tramontane_local::interrupt::WatchError;
use tramontane_local::output::print_notice;

/// The log files of a process, and whether a reopen was requested.
pub(crate) struct Rotation {
    files: Vec<SharedLogFile>,
    is_asked: Arc<AtomicBool>,
    has_terminal: bool,
}

impl Rotation {
    /// Watches for SIGHUP. From then on, SIGHUP does not end this process if the process has log
    /// files.
    pub(crate) fn watch(files: Vec<SharedLogFile>) -> Result<Self, WatchError> {
        let is_asked = Arc::default();
        if !files.is_empty() {
            signal_hook::flag::register(SIGHUP, Arc::clone(&is_asked))?;
        }
        Ok(Self { files, is_asked, has_terminal: has_terminal() })
    }

    /// Reopens the files if a SIGHUP arrived.
    pub(crate) fn rotate(&self) {
        if !self.is_asked.swap(false, Ordering::Relaxed) {
            return;
        }
        if self.has_terminal && !has_terminal() {
            // Ends the process in order: SIGTERM is handled.
            let _ = signal_hook::low_level::raise(SIGTERM);
            return;
        }
        for file in &self.files {
            if let Err(error) = file.reopen() {
                let path = file.path();
                print_notice(&format!(
                    "cannot reopen the log {}: {error}; make room for it, and send SIGHUP again; \
                     until then, lines go to the old file",
                    path.display()
                ));
            }
        }
    }
}

/// Returns whether this process has a controlling terminal.
fn has_terminal() -> bool {
    open("/dev/tty", OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).is_ok()
}
