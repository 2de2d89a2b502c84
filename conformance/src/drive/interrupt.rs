//! SIGINT and SIGTERM as a flag that every wait of the driver checks, so that it can clean up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the driver was asked to end, and by which signal.
#[derive(Clone, Debug, Default)]
pub struct Interrupts {
    signal: Arc<AtomicUsize>,
}

impl Interrupts {
    /// Starts to watch the two signals, which then only set the flag.
    ///
    /// # Errors
    /// Fails with the error of the system.
    pub fn watch() -> io::Result<Self> {
        let interrupts = Self::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register_usize(signal, Arc::clone(&interrupts.signal), signal as usize)?;
        }
        Ok(interrupts)
    }

    /// Returns the signal that arrived, if any.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}
