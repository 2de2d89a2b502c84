//! The paper's figures as functions of a machine: for everything that compares them with the paper.

pub(crate) use super::bed::Bed;
pub(crate) use super::breakdown::{Stall, Steps, figure_5, stall, table_1};
pub(crate) use super::interrupts::{Completions, Load, SIZES, figure_11};
pub(crate) use super::offload::{Both, figure_12};
pub(crate) use super::preemption::slowdown;
pub(crate) use super::several::{Storage, figure_9, figure_10, writes};
pub(crate) use super::single::{figure_4, figure_6, figure_8};
pub(crate) use super::small::{figure_7, small_messages};
