//! SIGINT and SIGTERM as flags that loops and waits check, so that a command can clean up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// A signal asked this process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// SIGINT.
    #[error("interrupted")]
    Interrupt,
    /// SIGTERM.
    #[error("terminated")]
    Terminate,
}

/// The operating system refused to watch for signals.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch for signals: {0}")]
pub struct WatchError(#[from] pub io::Error);

/// Whether this process has been asked to end, and by which signal.
#[derive(Clone, Debug)]
pub struct Interrupts {
    asked: Arc<AtomicBool>,
    with: Arc<AtomicUsize>,
}

impl Interrupts {
    /// Watches for the two signals. From now on, they only set the flag, however often they arrive:
    /// `timeout` and terminals may send one twice. Every wait of a command is short, so the command
    /// ends soon after a signal.
    ///
    /// # Errors
    /// [`WatchError`]: what the operating system says.
    pub fn watch() -> Result<Self, WatchError> {
        let interrupts = Self { asked: Arc::default(), with: Arc::default() };
        interrupts.register()?;
        Ok(interrupts)
    }

    fn register(&self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // The order matters: a thread that sees the flag also sees which signal arrived.
            flag::register_usize(signal, Arc::clone(&self.with), signal as usize)?;
            flag::register(signal, Arc::clone(&self.asked))?;
        }
        Ok(())
    }

    /// Makes the signals set this flag too, for a wait that can also end for other reasons.
    ///
    /// # Errors
    /// [`WatchError`]: what the operating system says.
    pub fn raise_too(&self, flag: &Arc<AtomicBool>) -> Result<(), WatchError> {
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(flag))?;
        }
        // A signal may already have arrived.
        flag.fetch_or(self.is_asked(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the flag, which can be used to end waits.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.asked
    }

    /// Returns whether this process has been asked to end.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Forgets earlier signals: only later signals count.
    pub fn forget(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Fails if this process has been asked to end.
    ///
    /// # Errors
    /// Fails with the signal that arrived.
    pub fn check(&self) -> Result<(), Interrupted> {
        if !self.is_asked() {
            return Ok(());
        }
        let terminated = self.with.load(Ordering::Relaxed) == SIGTERM as usize;
        Err(if terminated { Interrupted::Terminate } else { Interrupted::Interrupt })
    }
}
