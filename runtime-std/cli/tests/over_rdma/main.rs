//! The program `tramontane` over RDMA. All tests need a device: `hal-verbs/lab/ci` runs them in the
//! lab, by name.

#[path = "../command_line/support/mod.rs"]
mod support;
mod verbs_device;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tramontane");
