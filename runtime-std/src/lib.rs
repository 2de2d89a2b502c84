//! Tramontane as a program: threads, processes, the shared-memory fabric.

pub mod bench;
pub mod configuration;
pub mod host;
pub mod join;
pub mod member;
pub mod shared_memory;
