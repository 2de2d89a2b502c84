//! The fabric over shared memory.

mod blocks;
mod blocks_processes;
mod descriptors;
mod fabric;
mod met;
mod processes;
mod regions;
mod regions_processes;
mod regions_spoilt;
mod support;
mod views;
mod views_processes;
