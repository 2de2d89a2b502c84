//! The program `tramontane` over RDMA. All of it needs a device: `hal-verbs/lab/ci` runs it in the
//! lab, by name.

mod copy_verbs;
#[path = "../command_line/support/mod.rs"]
mod support;
mod verbs_device;
