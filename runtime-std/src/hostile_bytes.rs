//! Where this program reads what others wrote, as functions of bytes: `fuzz` calls them with what a
//! fuzzer makes, the tests beside each of them with what is made at random.

pub use crate::group::hostile_bytes::{control, group_file};
#[cfg(fuzzing)]
pub use crate::tcp::hostile_bytes::frames;
#[cfg(fuzzing)]
pub use tramontane_control::hostile_bytes::greeting;
