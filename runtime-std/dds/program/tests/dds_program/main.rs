//! The program `tramontane-dds` as its users meet it: real processes, their output and exit
//! statuses.

mod dds;
#[path = "../../../../cli/tests/command_line/support/mod.rs"]
mod support;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tramontane-dds");
