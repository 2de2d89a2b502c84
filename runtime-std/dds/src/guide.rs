//! The guide's page about DDS. Its examples are compiled with the other doc tests.

#[doc = include_str!("../../../docs/guide/src/programs/dds.md")]
mod dds {}
