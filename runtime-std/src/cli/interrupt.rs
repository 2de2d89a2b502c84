//! SIGINT and SIGTERM as flags that loops and waits look at, so that a command can clean up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::exit::{Failure, Status};

/// Whether, and how, this process was asked to end.
#[derive(Clone, Debug)]
pub(super) struct Interrupts {
    asked: Arc<AtomicBool>,
    with: Arc<AtomicUsize>,
}

impl Interrupts {
    /// From now on the two signals raise the flag and do nothing else, however often they come: `timeout`
    /// and terminals may well send one twice. Every wait of a command is short, so it ends soon.
    pub(super) fn watch() -> Result<Self, Failure> {
        let interrupts = Self { asked: Arc::default(), with: Arc::default() };
        interrupts
            .register()
            .map_err(|error| Failure::system("cannot watch for signals", &error))?;
        Ok(interrupts)
    }

    fn register(&self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // In this order: whoever sees the flag sees which signal it was.
            flag::register_usize(signal, Arc::clone(&self.with), signal as usize)?;
            flag::register(signal, Arc::clone(&self.asked))?;
        }
        Ok(())
    }

    /// From now on the signals raise this flag too, for a wait that others end as well.
    pub(super) fn raise_too(&self, flag: &Arc<AtomicBool>) -> Result<(), Failure> {
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(flag))
                .map_err(|error| Failure::system("cannot watch for signals", &error))?;
        }
        // One may have come before.
        flag.fetch_or(self.is_asked(), Ordering::Relaxed);
        Ok(())
    }

    /// The flag, to end waits with.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.asked
    }

    /// Whether this process was asked to end.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// From now on only a signal that is yet to come counts.
    pub(super) fn forget(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Fails if this process was asked to end.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !self.is_asked() {
            return Ok(());
        }
        let terminated = self.with.load(Ordering::Relaxed) == SIGTERM as usize;
        Err(Failure::silent(if terminated { Status::Terminated } else { Status::Interrupted }))
    }
}
