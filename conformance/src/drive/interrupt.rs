//! SIGINT and SIGTERM as a flag that every wait of the driver looks at, so that it can clean up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether, and by which signal, the driver was asked to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupts {
    signal: Arc<AtomicUsize>,
}

impl Interrupts {
    /// From now on the two signals are remembered and do nothing else.
    ///
    /// # Errors
    /// What the system says.
    pub fn watch() -> io::Result<Self> {
        let interrupts = Self::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register_usize(signal, Arc::clone(&interrupts.signal), signal as usize)?;
        }
        Ok(interrupts)
    }

    /// The signal that came, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}
