//! Histories: what the members of a group were asked, what they delivered, and what was done to
//! them.
//!
//! A history is a text of one JSON object a line, and the only thing that passes between a driver
//! and the checker. `docs/history.md` beside this crate is its definition; this module reads and
//! writes it and judges nothing.
//!
//! Invariants:
//! - reading never panics and never holds more than one line, whatever the bytes are;
//! - every error names its line;
//! - an event that this version does not know is handed on as [`Event::Unknown`], not dropped in
//!   silence.

mod event;
mod line;
mod reader;
mod writer;

pub use event::{EndReason, Event, FaultKind, GroupOrder, VERSION, VERSION_MIN};
pub use line::parse;
pub use reader::{HistoryError, LINE_BYTES_MAX, Reader, Trouble};
pub use writer::Writer;
