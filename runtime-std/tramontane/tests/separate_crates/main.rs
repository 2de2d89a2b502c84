//! Programs on pages of the documentation, each built as a separate crate.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod building;
#[cfg(feature = "typed")]
mod examples;
mod readme;
#[cfg(feature = "typed")]
mod replicated_map;
