//! The guide's page about this package, whose example is compiled with the other doc tests.

#[doc = include_str!("../../../docs/guide/src/programs/testing.md")]
mod testing {}
