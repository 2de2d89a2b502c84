//! Tests that the host fabrics keep the contract of a fabric.
//!
//! `cargo test -p tramontane-runtime --test contract -- --nocapture` prints the verdicts.

mod members;
mod shared_memory;
mod tcp;
