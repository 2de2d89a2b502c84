//! Reports of a run, for people and machines. Each file has one subject; none of them judges.
//!
//! | module | contents |
//! |---|---|
//! | `case`, `status` | a run and its result |
//! | `text` | the report for people at a terminal |
//! | `json` | `results.json`, for programs |
//! | `junit` | JUnit XML, for continuous integration |
//! | `html`, `diagram` | one page, with diagrams of broken promises |
//! | `causes` | broken promises of many cases, by cause |
//! | `quotes`, `printable`, `words`, `conclude` | shared parts |
//!
//! Invariants:
//! - text from a history, an adapter or a file name is never trusted: each format escapes it;
//! - a report's size is bounded by the number of cases, not by the size of their histories;
//! - if a history cannot be read a second time, the report is shorter but never fails.

mod case;
mod causes;
mod conclude;
mod diagram;
mod html;
mod json;
mod junit;
mod printable;
mod quotes;
#[cfg(test)]
mod samples;
mod status;
mod text;
mod words;

pub use case::{Case, CaseStatus, CutShort, OwnCheck, OwnOutcome, Run};
pub use html::render as html;
pub use json::render as json;
pub use junit::render as junit;
pub use printable::{printable, shortened};
pub use status::{RunStatus, Tally};
pub use text::write as text;
