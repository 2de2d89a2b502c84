//! The parsers of everything that others have written, as functions of bytes. `fuzz` calls them
//! with a fuzzer's input, and the tests in each module with random input.

pub use crate::group::hostile_bytes::group_file;
pub use crate::shards::hostile_bytes::overlay_file;
#[cfg(fuzzing)]
pub use crate::tcp::hostile_bytes::frames;
#[cfg(fuzzing)]
pub use tramontane_control::hostile_bytes::greeting;

/// Parses bytes as each kind of control-plane message of groups and of shards.
pub fn control(bytes: &[u8]) {
    crate::group::hostile_bytes::control(bytes);
    crate::shards::hostile_bytes::control(bytes);
}
