//! Calls every public function of the core, with arguments that the compiler cannot know.
//!
//! The linker examines only code that is called, so the proof covers the calls made here and in the
//! run of the group. Results go to `black_box`; otherwise the compiler would remove the calls
//! together with their panics. `run` compares the names called here with the names that the core's
//! sources make public.

mod health;
mod host;
mod memory;
mod protocol;
#[cfg(feature = "blocks")]
mod rdmc;
#[cfg(feature = "durable")]
mod restart;
#[cfg(feature = "tram")]
mod tram;
#[cfg(feature = "blocks")]
mod transfer;
#[cfg(feature = "views")]
mod views;

pub use protocol::node;

use core::fmt::{self, Debug, Display, Write as _};
use core::hint::black_box;

/// Calls everything that needs no group, once. The results do not matter.
pub fn call_everything() {
    health::call();
    host::call();
    memory::call();
    protocol::call();
    #[cfg(feature = "blocks")]
    rdmc::call();
    #[cfg(feature = "blocks")]
    transfer::call();
    #[cfg(feature = "durable")]
    restart::call();
    #[cfg(feature = "tram")]
    tram::call();
    #[cfg(feature = "views")]
    views::call();
}

/// Accepts text and discards it.
struct Sink;

impl fmt::Write for Sink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        black_box(text);
        Ok(())
    }
}

/// Formats a value, because formatting is part of the core's code too.
///
/// Do not use it for structs of more than five fields: their derived `Debug` calls a function in
/// Rust's own `core` that asserts that there are as many names as values, and the compiler does not
/// see that this holds.
fn debug(value: impl Debug) {
    let _ = black_box(write!(Sink, "{:?} {:#?}", black_box(&value), black_box(&value)));
}

fn display(value: impl Display + Debug) {
    let _ = black_box(write!(Sink, "{} {:>9}", black_box(&value), black_box(&value)));
    debug(value);
}
