//! What the record of the papers' numbers takes from these experiments.

pub(crate) use super::bed::Bed;
pub(crate) use super::breakdown::{stall, table_1};
pub(crate) use super::interrupts::Completions;
pub(crate) use super::several::{figure_9, writes};
