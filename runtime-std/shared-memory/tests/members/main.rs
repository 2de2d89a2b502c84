//! The fabric over shared memory.

mod blocks;
mod blocks_processes;
mod descriptors;
mod fabric;
mod processes;
mod regions;
mod support;
mod views;
mod views_processes;
