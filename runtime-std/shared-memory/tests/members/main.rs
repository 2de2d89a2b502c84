//! The fabric over shared memory.

mod blocks;
mod blocks_processes;
mod fabric;
mod processes;
mod support;
mod views;
mod views_processes;
