//! The program `tramontane-copy` over RDMA. It needs a device: `hal-verbs/lab/ci` runs it in the
//! lab, by name.

#[path = "../copy/copies.rs"]
mod copies;
mod copy_verbs;
#[path = "../../../cli/tests/command_line/support/mod.rs"]
mod support;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tramontane-copy");
