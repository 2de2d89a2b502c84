//! Ports for environments that have no ARINC 653 services.
//!
//! | file | contents |
//! |---|---|
//! | `stepped` | ports of two partitions that are stepped in turn, without any system |
//! | `apex` | the ports of a system with the traits of `a653rs` |
//! | `linux` | such a system, built from a Linux process and its sockets |

#[cfg(feature = "apex")]
pub mod apex;
#[cfg(feature = "linux")]
pub mod linux;
pub mod stepped;
