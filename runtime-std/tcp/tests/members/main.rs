//! The fabric over TCP.

mod blocks;
mod blocks_hostile;
mod fabric;
mod hostile;
mod regions_contract;
mod support;
mod views;
