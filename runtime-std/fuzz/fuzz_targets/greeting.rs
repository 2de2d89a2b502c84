//! Fuzzes the first bytes on a connection, at both ends, and the message that follows them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tramontane_runtime::hostile_bytes::greeting(bytes));
