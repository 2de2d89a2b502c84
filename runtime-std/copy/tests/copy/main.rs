//! The program `tramontane-copy` as its users see it: real processes, their output, and their exit
//! statuses.

mod copies;
mod copy;
mod copy_failures;
mod copy_kills;
mod copy_losses;
#[path = "../../../cli/tests/command_line/support/mod.rs"]
mod support;
mod terminal;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tramontane-copy");
