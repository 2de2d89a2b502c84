//! Ports for environments without such a system.
//!
//! | file | what it holds |
//! |---|---|
//! | `stepped` | ports of two partitions that are stepped in turn: no system at all |
//! | `apex` | the ports of a system with the traits of `a653rs` |
//! | `linux` | such a system out of a process on Linux and its sockets |

#[cfg(feature = "apex")]
pub mod apex;
#[cfg(feature = "linux")]
pub mod linux;
pub mod stepped;
