//! First words on a connection, at both ends, and what is said next.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tramontane_runtime::hostile_bytes::greeting(bytes));
