//! SIGINT and SIGTERM as flags that loops and waits look at, so that a command can clean up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// This process was asked to end by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// SIGINT.
    #[error("interrupted")]
    Interrupt,
    /// SIGTERM.
    #[error("terminated")]
    Terminate,
}

/// Signals cannot be watched for.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch for signals: {0}")]
pub struct WatchError(#[from] pub io::Error);

/// Whether, and how, this process was asked to end.
#[derive(Clone, Debug)]
pub struct Interrupts {
    asked: Arc<AtomicBool>,
    with: Arc<AtomicUsize>,
}

impl Interrupts {
    /// From now on the two signals raise the flag and do nothing else, however often they come:
    /// `timeout` and terminals may well send one twice. Every wait of a command is short, so it
    /// ends soon.
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
            // In this order: a thread that sees the flag sees which signal it was.
            flag::register_usize(signal, Arc::clone(&self.with), signal as usize)?;
            flag::register(signal, Arc::clone(&self.asked))?;
        }
        Ok(())
    }

    /// From now on the signals raise this flag too, for a wait that something else ends as well.
    ///
    /// # Errors
    /// [`WatchError`]: what the operating system says.
    pub fn raise_too(&self, flag: &Arc<AtomicBool>) -> Result<(), WatchError> {
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(flag))?;
        }
        // One may have come before.
        flag.fetch_or(self.is_asked(), Ordering::Relaxed);
        Ok(())
    }

    /// The flag, to end waits with.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.asked
    }

    /// Whether this process was asked to end.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// From now on only a signal that is yet to come counts.
    pub fn forget(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Fails if this process was asked to end.
    ///
    /// # Errors
    /// By which signal.
    pub fn check(&self) -> Result<(), Interrupted> {
        if !self.is_asked() {
            return Ok(());
        }
        let terminated = self.with.load(Ordering::Relaxed) == SIGTERM as usize;
        Err(if terminated { Interrupted::Terminate } else { Interrupted::Interrupt })
    }
}
