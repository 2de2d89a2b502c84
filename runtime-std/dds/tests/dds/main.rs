//! Participants of real groups, as threads of this process.

#[path = "../../../local/src/free_addresses.rs"]
mod free_addresses;
mod from_a_place;
mod instances;
mod levels;
mod outside;
mod outside_refused;
mod outside_topics;
mod policies;
mod support;
mod topics;
mod types;
