//! Fuzzes the text of an overlay file of shards.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tramontane_runtime::hostile_bytes::overlay_file(bytes));
