//! How far an experiment is, on a terminal. An experiment that fails or is interrupted leaves
//! nothing of it behind.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_usize;
use signal_hook::low_level::emulate_default_handler;

/// Between two looks whether a signal came.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Between two pictures.
const TICK: Duration = Duration::from_millis(200);

/// A bar of this number of steps; gone when it is dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Drawn on standard error, and only if that is a terminal.
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

    /// The same for an experiment that does not look whether it was interrupted.
    pub(crate) fn cleared_by_signals(steps: u64) -> Self {
        let progress = Self::new(steps);
        if !progress.is_hidden() {
            clear_on_signals(&progress);
        }
        progress
    }
}

impl Deref for Progress {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// From now on a signal that ends the process clears the bar away first. Without a thread for it,
/// it ends as it is.
fn clear_on_signals(bar: &ProgressBar) {
    let (signal, bar) = (Arc::<AtomicUsize>::default(), bar.clone());
    let came = Arc::clone(&signal);
    let watch = move || {
        loop {
            let signal = came.load(Ordering::Relaxed);
            if let (1.., Ok(signal)) = (signal, i32::try_from(signal)) {
                bar.finish_and_clear();
                // As without a watch: the shell sees which signal it was.
                let _ = emulate_default_handler(signal);
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    };
    if std::thread::Builder::new().name("tramontane-bar".into()).spawn(watch).is_ok() {
        for number in [SIGINT, SIGTERM] {
            // Where it cannot be watched, it does what it always does.
            let _ = register_usize(number, Arc::clone(&signal), number.cast_unsigned() as usize);
        }
    }
}
