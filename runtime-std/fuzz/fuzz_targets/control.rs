//! Fuzzes the messages between members, joiners and operators.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tramontane_runtime::hostile_bytes::control(bytes));
