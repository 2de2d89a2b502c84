//! What members, joiners and operators say to each other.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tramontane_runtime::hostile_bytes::control(bytes));
