//! Fuzzes the archive that a receiver of a copy unpacks.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tramontane_copy::garbage::archive(bytes));
