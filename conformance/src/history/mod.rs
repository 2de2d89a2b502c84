//! Histories: the requests to the members of a group, their deliveries, and the faults injected.
//!
//! A history is a text with one JSON object per line, and the only data that passes between a
//! driver and the checker. `docs/history.md` in this crate defines it. This module reads and writes
//! histories, but does not judge them.
//!
//! Invariants:
//! - reading never panics and never holds more than one line, even for arbitrary bytes;
//! - every error names its line;
//! - an event that this version does not know is returned as [`Event::Unknown`], not dropped
//!   silently.

mod event;
mod line;
mod reader;
mod writer;

pub use event::{EndReason, Event, FaultKind, GroupOrder, VERSION, VERSION_MIN};
pub use line::parse;
pub use reader::{HistoryError, LINE_BYTES_MAX, Reader, Trouble};
pub use writer::Writer;
