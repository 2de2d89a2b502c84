//! Fuzzes the text of a group file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tramontane_runtime::hostile_bytes::group_file(bytes));
