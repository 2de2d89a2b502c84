//! The program `tramontane` over RDMA. All of it needs a device: `hal-verbs/lab/ci` runs it in the
//! lab, by name.

#[path = "../command_line/support/mod.rs"]
mod support;
mod verbs_device;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tramontane");
