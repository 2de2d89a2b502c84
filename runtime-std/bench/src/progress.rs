//! The progress of an experiment, on a terminal. If an experiment fails or is interrupted, no trace
//! of the progress remains.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use signal_hook::low_level::emulate_default_handler;

/// Interval between checks for a signal.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Interval between updates.
const TICK: Duration = Duration::from_millis(200);

/// A bar with `steps` steps, which disappears when it is dropped.
pub(crate) struct StepsBar(ProgressBar);

impl StepsBar {
    /// Draws on standard error, and only if that is a terminal.
    pub(crate) fn new(steps: u64) -> Self {
        let style =
            ProgressStyle::with_template("{spinner} {msg} [{bar:30}] {pos}/{len} {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(steps).with_style(style).with_finish(ProgressFinish::AndClear);
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
    }

    /// Creates a bar for an experiment that does not check for interrupts.
    pub(crate) fn cleared_by_signals(steps: u64) -> Self {
        let progress = Self::new(steps);
        if !progress.is_hidden() {
            clear_on_signals(&progress);
        }
        progress
    }
}

impl Deref for StepsBar {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for StepsBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Makes a signal that ends the process clear the bar first. If the thread that does this cannot be
/// started, the bar is left on the terminal.
fn clear_on_signals(bar: &ProgressBar) {
    let (signal, bar) = (Arc::<AtomicUsize>::default(), bar.clone());
    let came = Arc::clone(&signal);
    let watch = move || {
        loop {
            let signal = came.load(Ordering::Relaxed);
            if let (1.., Ok(signal)) = (signal, i32::try_from(signal)) {
                bar.finish_and_clear();
                // The shell then sees which signal arrived, as it would without a handler.
                let _ = emulate_default_handler(signal);
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    };
    if std::thread::Builder::new().name("tramontane-bar".into()).spawn(watch).is_ok() {
        for number in [SIGINT, SIGTERM] {
            // If the signal cannot be watched for, it has its default effect.
            let _ = register_usize(number, Arc::clone(&signal), number.cast_unsigned() as usize);
        }
    }
}
