//! Fuzzes the bytes that a peer sends over TCP.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tramontane_runtime::hostile_bytes::frames(bytes));
