//! Where this program reads what others wrote, as functions of bytes: `fuzz` calls them with what a
//! fuzzer makes, the tests beside each of them with what is made at random.

pub use crate::copy::garbage::archive;
