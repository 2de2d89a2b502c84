//! The fabric over TCP.

mod blocks;
mod blocks_hostile;
mod coming_and_going;
mod fabric;
#[path = "../../../local/src/free_addresses.rs"]
mod free_addresses;
mod hostile;
mod regions_contract;
mod regions_hostile;
mod support;
mod views;
